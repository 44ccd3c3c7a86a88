"""Parsers of statements. Take the text of a statement as tokens (`pyhudi.sql.token_cursor`), and give it as one of the
dataclasses of `pyhudi.sql.statements`, or None if Spark is to run it. `statement_parser` chooses among the others.
"""
