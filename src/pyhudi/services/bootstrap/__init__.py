"""Bootstrap: creates a table on top of existing files.

Takes a folder of Parquet or ORC files and options, and returns the plan of a bootstrap with its checks; executes
metadata-only bootstraps. An engine reads the rows for full-record bootstraps.
"""
