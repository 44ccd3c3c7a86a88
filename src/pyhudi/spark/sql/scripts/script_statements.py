"""Statements, conditions and expressions of a script, which are run in the scopes around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import BooleanType, StructType

from pyhudi.errors import QueryError, SqlSyntaxError
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.scripts.script_rows import ScriptCursor, show_row
from pyhudi.spark.sql.scripts.script_scopes import ScriptScopes
from pyhudi.spark.sql.spark_statements import type_text
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.statements import ExecuteImmediate, SelectStatement, Statement
from pyhudi.sql.string_literals import string_expression
from pyhudi.sql.token_cursor import literal_text

RunSql: TypeAlias = Callable[[str], DataFrame]
_ROW, _VALUE = "_pyhudi_row_of_script", "_pyhudi_value_in_script"
_numbers = count()


@dataclass
class ScriptStatements:
    """Runs the statements of a script, and has the result of the last query.

    Attributes:
        spark: The session.
        run_sql: Runs a statement.
        scopes: The scopes around the statement that is being run.
        reads_at_once: Read the rows of each query when it is run, instead of before the next statement.
        result: The result of the last query.
        result_is_read: Its rows have been read.
    """

    spark: SparkSession
    run_sql: RunSql
    scopes: ScriptScopes
    reads_at_once: bool
    result: DataFrame | None = None
    result_is_read: bool = False

    def run(self, text: str) -> DataFrame:
        """Run a statement, after the rows of the query before it have been read: it may fail, and the statement may
        change what it reads."""
        if self.result is not None and not self.result_is_read:
            self.result, self.result_is_read = self.result.localCheckpoint(), True
        return self.run_sql(self.scopes.with_variables(text))

    def run_statement(self, text: str) -> None:
        """Run a statement of the script; the rows of a query are the result."""
        statement = _parsed(text)
        if isinstance(statement, ExecuteImmediate):
            inner = self._text_of(statement)
            if inner is not None:
                text = _with_literal_text(statement, inner)
                statement = None if statement.into else _parsed(inner)
        is_query = isinstance(statement, SelectStatement) and not statement.head
        rows = self.run(text)
        if is_query:
            self.result = rows.localCheckpoint() if self.reads_at_once else rows
            self.result_is_read = self.reads_at_once

    @contextmanager
    def evaluated(self, expression: str) -> Iterator[str]:
        """Return a context manager for the name of a variable with the value of an expression; empty if it is."""
        if not expression:
            yield ""
            return
        name = f"{_VALUE}_{next(_numbers)}"
        data_type = self.run(f"SELECT ({expression}) AS value").schema[0].dataType
        spark_sql(self.spark, f"DECLARE OR REPLACE VARIABLE {name} {type_text(data_type)}")
        try:
            self.run(f"SET VARIABLE {name} = (SELECT ({expression}))")  # which may be a query, unlike a default value
            yield f"system.session.{name}"
        finally:
            spark_sql(self.spark, f"DROP TEMPORARY VARIABLE {name}")

    def holds(self, condition: str) -> bool:
        """Evaluate a condition. NULL does not hold."""
        rows = self.run(f"SELECT ({condition}) AS holds")
        data_type = rows.schema[0].dataType
        if not isinstance(data_type, BooleanType):
            raise QueryError(f"the condition {condition!r} of a script is no BOOLEAN but {data_type.simpleString()}")
        return bool(rows.collect()[0][0])

    def snapshot(self, query: str) -> DataFrame:
        """Return the rows that a query has now. Spark Connect resolves variables only when rows are read."""
        rows = self.run(query)
        return rows.localCheckpoint() if is_connect(self.spark) else rows

    def open_cursor(self, cursor: ScriptCursor, using: str) -> None:
        """Run the query of a cursor, with the arguments ``using``."""
        cursor.check_closed()
        query = self.scopes.with_variables(cursor.query)
        bound = f"EXECUTE IMMEDIATE {string_expression(query)} USING {using}" if using else query
        cursor.open(self.snapshot(bound))

    def fetch(self, cursor: ScriptCursor, variables: Sequence[str]) -> None:
        """Assign the next row to variables, or to one that is a struct."""
        self._assign_row(variables, cursor.fetch(self.spark, variables, _ROW))

    def assign_columns(self, names: Sequence[str], row: Row, columns: StructType) -> None:
        """Assign a row of `local_rows` to variables with the names of its columns."""
        show_row(self.spark, row, columns, _ROW)
        self._assign_row(names, f"SELECT {', '.join(names)} FROM {_ROW}")

    def _assign_row(self, variables: Sequence[str], query: str) -> None:
        """Assign the row of a query of `_ROW` to variables, and drop that view."""
        names = self.scopes.with_variables(", ".join(variables))
        try:
            spark_sql(self.spark, f"SET VARIABLE ({names}) = ({query})")
        finally:
            self.spark.catalog.dropTempView(_ROW)

    def _text_of(self, statement: ExecuteImmediate) -> str | None:
        """Evaluate the text of EXECUTE IMMEDIATE; None if it has no value, which Spark reports."""
        literal = literal_text(statement.text)
        if literal is not None:
            return literal
        try:
            value = self.run(f"SELECT {statement.text}").collect()[0][0]
        except PySparkException:
            return None
        return value if isinstance(value, str) else None


def _parsed(text: str) -> Statement | None:
    """Return a statement; None if it is one of Spark, or invalid, which is raised when it is run."""
    try:
        return parse(text)
    except SqlSyntaxError:
        return None


def _with_literal_text(statement: ExecuteImmediate, text: str) -> str:
    """Return EXECUTE IMMEDIATE with a literal, so that its text is not evaluated again."""
    into = f" INTO {statement.into}" if statement.into else ""
    using = f" USING {statement.using}" if statement.using else ""
    return f"EXECUTE IMMEDIATE {string_expression(text)}{into}{using}"
