"""Reads of the metadata table. Takes the table's storage and timeline, checks that the metadata table is complete
and current, and gives records of its partitions by key, by prefix or all of them; lists the data files.
"""
