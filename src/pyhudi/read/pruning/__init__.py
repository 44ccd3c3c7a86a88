"""Pruning of partitions and files.

Takes a filter, partitions and file slices, and returns those that may hold matching rows, by partition paths, column
statistics, bloom filters, bucket numbers and the record, secondary and expression indexes.
"""
