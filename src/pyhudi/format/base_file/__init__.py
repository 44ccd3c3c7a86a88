"""Base files in Parquet and ORC.

Writes Arrow batches to a file with its footer (record keys, bloom filter, column bounds), and reads batches and footers
back.
"""
