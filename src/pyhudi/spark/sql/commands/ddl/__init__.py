"""Statements that create, alter and drop Hudi tables, their columns, partitions and indexes.

Takes a parsed statement and the catalog's entry of its table, or the name of a new one. Changes the table and its entry
in the catalog together; of a statement that is refused, neither.
"""
