"""Parsers of statements. They take the tokens of a statement (`pyhudi.sql.token_cursor`), and return one of the
dataclasses of `pyhudi.sql.statements`, or None for statements that Spark executes. `statement_parser` chooses among the
others.
"""
