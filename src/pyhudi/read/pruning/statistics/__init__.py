"""Pruning by minima, maxima and null counts of columns, of files and of partitions.

Takes the terms of a filter and the column or partition statistics of the metadata table, and returns for each term a
mask of the files or partitions without a matching row.
"""
