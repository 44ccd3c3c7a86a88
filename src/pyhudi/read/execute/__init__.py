"""Execution of scan plans in this process. Takes a scan plan and gives Arrow batches on threads; gives tasks of
Spark the reader of one file slice.
"""
