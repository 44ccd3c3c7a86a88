"""Statements that change rows: INSERT, UPDATE, DELETE and MERGE.

Takes a parsed statement and the catalog's entry of its table, and runs it by the writes of `pyhudi.spark.write` and
`pyhudi.spark.dml`. An attempt that conflicts with another writer is repeated with the queries of the statement.
"""
