"""Parquet files with row groups of other files, which are copied byte for byte under a new footer.

Takes files and new values of some columns, and returns files whose other column chunks were not decoded.
"""
