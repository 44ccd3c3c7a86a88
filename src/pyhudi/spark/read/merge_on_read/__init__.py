"""Reads of file slices with log files.

Takes a scan plan and returns merged rows in one of three ways: a single scan by Spark of base files and cached log
rows; a scan of base files without the rows that logs replace, united with the rows of the logs; or merging in tasks.
"""
