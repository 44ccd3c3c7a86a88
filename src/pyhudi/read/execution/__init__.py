"""Execution of scan plans in this process.

Takes a scan plan and returns Arrow batches read on threads; provides the reader of one file slice for tasks of Spark.
"""
