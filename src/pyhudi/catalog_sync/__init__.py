"""Sync of tables to catalogs ("meta sync" of Apache Hudi), so that Trino, Presto, Hive and Athena find them by name.

Takes a snapshot of a table and settings, compares it with its entries in a Hive metastore or in AWS Glue, and creates,
changes or leaves these: tables, columns, properties, partitions. The result names what changed.
"""
