"""Pruning by keys and by values of indexes, one module for each kind of index.

Takes the terms of a filter, file slices, and the metadata table or the bucket configuration, and returns the slices or
the record locations that may match, or None where the index does not apply.
"""
