"""SQL statements on Hudi tables, parsed without an engine.

Texts of expressions and queries stay as they were written: sqlglot says where they begin and end, Spark alone reads
them.
"""
