"""Hudi tables in queries of Spark.

Takes the text of a query and replaces the names of Hudi tables, and Apache Hudi's table functions, by temporary
views. Returns the text that Spark runs; a view reads one snapshot of its table, without the files that predicates and
joins exclude.
"""
