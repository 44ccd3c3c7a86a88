"""Client of a Hive metastore over Thrift, without Java.

Takes the addresses of a metastore and returns tables and partitions as immutable values, changes them, and takes
locks. Requests and responses are those of the package pymetastore, generated from Hive's own definition.
"""
