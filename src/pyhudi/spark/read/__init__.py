"""Execution of scan plans on Spark.

Takes a scan plan and returns a DataFrame. Spark's own readers read base files; tasks merge file slices with log files.
"""
