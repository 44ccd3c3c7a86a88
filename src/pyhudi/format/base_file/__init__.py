"""Base files of every format: Parquet and ORC. Takes Arrow batches and gives a file with its footer (record keys,
bloom filter, column bounds); reads batches and footers back.
"""
