"""Operations beyond those that a write plan makes.

Takes a write job, or the options of an operation, and returns the result of the commit: partitions are dropped or
expire, a table is overwritten, buckets are rescaled, files of other formats are bootstrapped.
"""
