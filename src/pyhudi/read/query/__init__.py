"""Specification of a query: of which table, of which type, and of which instants.

Takes a path, and Apache Hudi's ``hoodie.datasource.*`` options or arguments, and returns the location of the table and
a `Query`, whose times are instants of the table. Nothing is planned or read.
"""
