"""Client of a Hive metastore over Thrift, without Java.

Takes the addresses of a metastore, sends requests, whose errors say the solution, and takes locks. Requests and
responses are those of the package pymetastore, generated from Hive's own definition.
"""
