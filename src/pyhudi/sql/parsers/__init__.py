"""Parsers of statements. `statement_parser` selects one of the others.

Takes the tokens of a statement (`pyhudi.sql.token_cursor`) and returns one of the dataclasses of
`pyhudi.sql.statements`, or None if Spark is to run the statement.
"""
