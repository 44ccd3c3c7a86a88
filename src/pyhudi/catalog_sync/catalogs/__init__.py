"""Catalogs that tables are synced to.

Takes options, and returns a catalog behind one protocol: a Hive metastore or AWS Glue. Its databases, tables and
partitions are immutable values.
"""
