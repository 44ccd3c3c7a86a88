"""Public API: `HudiTable` and what its methods return. `pyhudi` exports it.

Takes paths, Apache Hudi's options, and DataFrames or Arrow tables, chooses Spark or threads, and calls the packages
below. Returns DataFrames, Arrow tables, and results of writes and services.
"""
