"""Execution of scan plans in this process.

Takes a scan plan and returns Arrow batches read on threads. Provides tasks of Spark with the reader of one file slice,
and Spark's own reader with the schemas of the files of a plan.
"""
