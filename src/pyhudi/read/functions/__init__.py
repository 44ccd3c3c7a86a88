"""Functions on column values that Spark does not have: distances of vectors, and bytes of blobs.

Takes Arrow arrays or batches, and returns arrays of distances, the rows nearest to a vector, or the bytes that are
referenced in files.
"""
