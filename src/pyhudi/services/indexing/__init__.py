"""Index builds and drops.

Takes the name and options of an index and builds partitions of the metadata table, under the lock of the table or
concurrently with writers.
"""
