"""Reads of the metadata table.

Takes the storage and timeline of the table, checks that the metadata table is complete and current, and returns records
of its partitions by key, by prefix or all of them; lists the data files.
"""
