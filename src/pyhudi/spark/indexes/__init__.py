"""Builds and updates of metadata table indexes on Spark. Takes file slices and the write stats of a commit and returns
the records of expression, secondary and statistics indexes, written by one task for each file group."""
