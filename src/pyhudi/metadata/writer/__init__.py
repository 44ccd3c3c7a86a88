"""Writes to the metadata table.

Converts commits and rollbacks of the data table to delta commits of the same instants; initializes partitions and
builds indexes concurrently with writers.
"""
