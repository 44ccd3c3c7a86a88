"""Slices with log files as DataFrames. Takes a scan plan and gives merged rows: by one scan of Spark's over base files
and Parquet log blocks, by base files less the rows that logs change and the rows of the logs, or by tasks that merge.
"""
