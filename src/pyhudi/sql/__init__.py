"""SQL statements on Hudi tables, parsed without an engine.

Takes a text (`parsers.statement_parser.parse`) and returns a frozen dataclass that describes the statement
(`statements`), or None if Spark executes it without pyhudi. `procedure_signatures` has the parameters and results of
CALL. Texts of expressions and queries are kept as written: sqlglot determines their boundaries, only Spark parses them.
"""
