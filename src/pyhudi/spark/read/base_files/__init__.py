"""Base files of a plan through Spark's own readers. Takes a scan plan and gives a DataFrame of unfiltered rows, with
partition columns from the files or from the names of folders.
"""
