"""Statements that change or describe Hudi tables: CREATE, ALTER, INSERT, UPDATE, DELETE, MERGE, INDEX, SHOW.

Takes a parsed statement of `pyhudi.sql` and the catalog's entry of its table, and executes it by the writes and
services of that table. Returns the result that Apache Hudi returns, or nothing.
"""
