"""Record keys, partition paths and duplicate records of a batch, computed by Spark's own functions."""
