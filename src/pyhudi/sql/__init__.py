"""Statements of SQL on Hudi tables, parsed without an engine.

In comes a text (`statement_parser.parse`), out goes a frozen dataclass that says what the statement wants
(`statements`), or None if it is Spark's alone; `procedure_signatures` knows the parameters and results of CALL. Texts
of expressions and queries stay as they were written: sqlglot says where they begin and end, Spark alone reads them.
"""
