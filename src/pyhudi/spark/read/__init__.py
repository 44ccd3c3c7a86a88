"""Scan plans as DataFrames. Takes a scan plan and gives a DataFrame: base files through Spark's own readers, file
slices with log files merged by tasks.
"""
