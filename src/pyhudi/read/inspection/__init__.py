"""Inspection of tables.

Takes a table; returns its files, file slices, partitions, commits, deletions, log blocks and statistics as Arrow tables
that are displayed in terminals and notebooks.
"""
