"""Reads of base files by Spark's own readers.

Takes a scan plan and returns a DataFrame of unfiltered rows, with partition columns from the files or from the names of
folders.
"""
