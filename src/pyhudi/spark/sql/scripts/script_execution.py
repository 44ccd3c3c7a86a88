"""Execution of scripts (``BEGIN … END`` of Spark 4) that use Hudi tables.

Each statement is run as by ``spark.sql``. Local variables are variables of the session while the script runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from threading import RLock
from typing import TypeAlias

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructType

from pyhudi.errors import HudiError, QueryError, SqlSyntaxError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.queries.view_registry import session_id
from pyhudi.spark.sql.scripts.script_rows import ScriptCursor, local_rows, show_row
from pyhudi.spark.sql.scripts.script_scopes import Scope, ScriptScopes
from pyhudi.spark.sql.spark_statements import empty_result, type_text
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.scripts.script_conditions import ErrorCondition
from pyhudi.sql.scripts.script_defaults import with_default_values
from pyhudi.sql.scripts.script_nodes import (
    Assign,
    Block,
    CloseCursor,
    Declare,
    DeclareCursor,
    FetchCursor,
    For,
    If,
    Jump,
    Loop,
    Node,
    Nodes,
    OpenCursor,
    Run,
    nodes_of,
    undeclared_conditions,
)
from pyhudi.sql.statements import ExecuteImmediate, SelectStatement, Statement
from pyhudi.sql.string_literals import string_expression
from pyhudi.sql.token_cursor import literal_text

_RunSql: TypeAlias = Callable[[str], DataFrame]
_ROW, _VALUE = "_pyhudi_row_of_script", "_pyhudi_value_in_script"
_numbers = count()
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\].*?SQLSTATE: (?P<sqlstate>[0-9A-Z]{5})", re.DOTALL)
"""An error of Spark as text."""
_locks: dict[str, RLock] = {}
"""Locks of the sessions, whose variables are those of one script at a time; a script may run another one."""


def run_script(spark: SparkSession, body: Block, run: _RunSql) -> DataFrame:
    """Run a script. As in Spark, the statements before one that fails have been run then. Scripts that threads of one
    session run at the same time wait for each other.

    Args:
        spark: The session.
        body: The script.
        run: Runs a statement.

    Returns:
        The result of the last query; no columns if there is none.

    Raises:
        QueryError: A variable of the session has the name of one of the script, and nothing has run; or a condition is
            no BOOLEAN.
        SqlSyntaxError: A handler is for a condition that there is not, and nothing has run.
    """
    with _locks.setdefault(session_id(spark), RLock()):
        _check_names(spark, body)
        _check_conditions(spark, body)
        # an error is one of its statement, and Spark Connect resolves variables when rows are read
        reads_at_once = is_connect(spark) or any(isinstance(node, Block) and node.handlers for node in nodes_of(body))
        scopes = ScriptScopes(spark, run)
        execution = _ScriptExecution(spark, run, scopes, reads_at_once=reads_at_once)
        execution.run(body)
    return empty_result(spark) if execution.result is None else execution.result


def _check_names(spark: SparkSession, body: Block) -> None:
    for name in (name for node in nodes_of(body) if isinstance(node, Declare) for name in node.names):
        if _is_variable(spark, name):
            raise QueryError(
                f"the session has a variable {name!r}, as the script has: drop it, or take another name in the script"
            )


def _check_conditions(spark: SparkSession, body: Block) -> None:
    """Refuse handlers of conditions that neither a block around them has declared nor Spark has."""
    for name in sorted(undeclared_conditions(body)):
        try:
            spark_sql(spark, f"BEGIN DECLARE EXIT HANDLER FOR {quoted(name.split('.'))} BEGIN END; END")
        except Exception as error:
            if "CONDITION_NOT_FOUND" not in str(error):
                raise
            raise SqlSyntaxError(
                f"there is no condition {name}, for which the script has a handler: Spark has none of that name, and "
                "no block around the handler declares it; nothing has run"
            ) from None


def _is_variable(spark: SparkSession, name: str) -> bool:
    try:
        _ = spark_sql(spark, f"SELECT system.session.{quoted([name])}").schema  # which Spark Connect resolves then
    except PySparkException:
        return False
    return True


def _condition_of(error: Exception) -> ErrorCondition | None:
    """Return the condition of an error of a statement; None for others, which have no handlers."""
    if isinstance(error, PySparkException):
        name = getattr(error, "getCondition", error.getErrorClass)()
        sqlstate = error.getSqlState()
        if name and sqlstate:
            return ErrorCondition(name.upper(), sqlstate.upper())
    found = _CONDITION.search(str(error))  # PySpark does not translate all errors of Spark
    if found:
        return ErrorCondition(found["name"], found["sqlstate"])
    return ErrorCondition() if isinstance(error, HudiError | PySparkException) else None


def _is_invalid(node: Node, error: Exception) -> bool:
    """Return True for an error of the script's own syntax, which Spark would have found before it runs a script."""
    is_text = isinstance(node, Run) and node.text[:7].upper() == "EXECUTE"
    return isinstance(error, ParseException) and not is_text


class _Jumped(Exception):  # noqa: N818
    """Control has left a loop or block, or goes to the next turn of a loop."""

    def __init__(self, jump: Jump) -> None:
        super().__init__(jump.label)
        self.jump = jump


class _Exited(Exception):  # noqa: N818
    """An EXIT handler has run, and control leaves its block.

    Attributes:
        scope: The scope of that block.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope.label)
        self.scope = scope


@dataclass
class _ScriptExecution:
    """A script that is being run, with the result of the last query.

    Attributes:
        spark: The session.
        run_sql: Runs a statement.
        scopes: The scopes around the statement that is being run.
        reads_at_once: Read the rows of each query when it is run, instead of before the next statement.
        result: The result of the last query.
        result_is_read: Its rows have been read.
        unhandled: An error that no handler handles.
    """

    spark: SparkSession
    run_sql: _RunSql
    scopes: ScriptScopes
    reads_at_once: bool = False
    result: DataFrame | None = None
    result_is_read: bool = False
    unhandled: Exception | None = None

    def run(self, node: Node) -> None:
        """Run a part of the script.

        Raises:
            Exception: It has failed, and there is no handler for the error.
        """
        try:
            self._execute(node)
        except (_Jumped, _Exited):
            raise
        except Exception as error:
            if error is self.unhandled:
                raise
            condition = None if _is_invalid(node, error) else _condition_of(error)
            if condition is None or not (self._handle(condition) or condition.is_no_data):
                self.unhandled = error
                raise

    def _handle(self, condition: ErrorCondition) -> bool:
        """Run the handler for a condition. Return False if there is none."""
        found = self.scopes.handler(condition)
        if found is None:
            return False
        scope, handler = found
        with self.scopes.back_in(scope, returns=handler.continues), suppress(_Exited):
            # as in Spark, an EXIT handler of a block around this one, for an error of this handler, leaves this handler
            self.run(handler.body)
        if not handler.continues:
            raise _Exited(scope)
        return True

    def _execute(self, node: Node) -> None:
        match node:
            case Run(text=text):
                self._run_any(text)
            case Declare(names=names, clauses=clauses):
                self.scopes.declare(names, clauses)
            case Assign(text=text):
                self._run(f"SET VARIABLE {with_default_values(text, self.scopes.default)}")
            case If():
                self._run_branches(node)
            case Block():
                self._run_block(node)
            case Loop():
                self._run_loop(node)
            case For():
                self._run_for(node)
            case Jump():
                raise _Jumped(node)
            case DeclareCursor(name=name, query=query):
                self.scopes.declare_cursor(ScriptCursor(name, query))
            case OpenCursor(name=name, using=using):
                self._open(self.scopes.cursor(name), using)
            case FetchCursor(name=name, variables=variables):
                self._fetch(self.scopes.cursor(name), variables)
            case CloseCursor(name=name):
                self.scopes.cursor(name).close()

    def _run(self, text: str) -> DataFrame:
        """Run a statement, after the rows of the query before it have been read: it may fail, and the statement may
        change what it reads."""
        if self.result is not None and not self.result_is_read:
            self.result, self.result_is_read = self.result.localCheckpoint(), True
        return self.run_sql(self.scopes.with_variables(text))

    def _run_any(self, text: str) -> None:
        statement = _parsed(text)
        if isinstance(statement, ExecuteImmediate):
            inner = self._text_of(statement)
            if inner is not None:
                text = _with_literal_text(statement, inner)
                statement = None if statement.into else _parsed(inner)
        is_query = isinstance(statement, SelectStatement) and not statement.head
        rows = self._run(text)
        if is_query:
            self.result = rows.localCheckpoint() if self.reads_at_once else rows
            self.result_is_read = self.reads_at_once

    def _text_of(self, statement: ExecuteImmediate) -> str | None:
        """Evaluate the text of EXECUTE IMMEDIATE; None if it has no value, which Spark reports."""
        literal = literal_text(statement.text)
        if literal is not None:
            return literal
        try:
            value = self._run(f"SELECT {statement.text}").collect()[0][0]
        except PySparkException:
            return None
        return value if isinstance(value, str) else None

    def _run_all(self, nodes: Nodes) -> None:
        for node in nodes:
            self.run(node)

    def _run_branches(self, node: If) -> None:
        with self._evaluated(node.value) as value:
            taken = (body for test, body in node.branches if self._holds(f"{value} = ({test})" if value else test))
            body = next(taken, node.otherwise)
        self._run_all(body)

    @contextmanager
    def _evaluated(self, expression: str) -> Iterator[str]:
        """Return a context manager for the name of a variable with the value of an expression; empty if it is."""
        if not expression:
            yield ""
            return
        name = f"{_VALUE}_{next(_numbers)}"
        kind = self._run(f"SELECT ({expression}) AS value").schema[0].dataType
        spark_sql(self.spark, f"DECLARE OR REPLACE VARIABLE {name} {type_text(kind)}")
        try:
            self._run(f"SET VARIABLE {name} = (SELECT ({expression}))")  # which may be a query, unlike a default value
            yield f"system.session.{name}"
        finally:
            spark_sql(self.spark, f"DROP TEMPORARY VARIABLE {name}")

    def _run_block(self, block: Block) -> None:
        with self.scopes.entered(block.label, block.handlers) as scope:
            try:
                self._run_all(block.body)
            except _Jumped as jumped:
                if jumped.jump != Jump("LEAVE", block.label):
                    raise
            except _Exited as exited:
                if exited.scope is not scope:
                    raise

    def _holds(self, condition: str) -> bool:
        """Evaluate a condition. NULL does not hold."""
        found = self._run(f"SELECT ({condition}) AS holds")
        kind = found.schema[0].dataType
        if not isinstance(kind, BooleanType):
            raise QueryError(f"the condition {condition!r} of a script is no BOOLEAN but {kind.simpleString()}")
        return bool(found.collect()[0][0])

    def _turn(self, body: Nodes, label: str) -> bool:
        """Run the statements of a loop once. Return False if they leave it."""
        try:
            self._run_all(body)
        except _Jumped as jumped:
            if jumped.jump.label != label or not label:
                raise
            return jumped.jump.verb == "ITERATE"
        return True

    def _run_loop(self, loop: Loop) -> None:
        while not loop.condition or self._holds(loop.condition):
            if not self._turn(loop.body, loop.label) or (loop.until and self._holds(loop.until)):
                return

    def _snapshot(self, query: str) -> DataFrame:
        """Return the rows that a query has now. Spark Connect resolves variables only when rows are read."""
        rows = self._run(query)
        return rows.localCheckpoint() if is_connect(self.spark) else rows

    def _open(self, cursor: ScriptCursor, using: str) -> None:
        cursor.check_closed()
        query = self.scopes.with_variables(cursor.query)
        bound = f"EXECUTE IMMEDIATE {string_expression(query)} USING {using}" if using else query
        cursor.open(self._snapshot(bound))

    def _fetch(self, cursor: ScriptCursor, variables: Sequence[str]) -> None:
        """Assign the next row to variables, or to one that is a struct."""
        self._assign_row(variables, cursor.fetch(self.spark, variables, _ROW))

    def _assign_row(self, variables: Sequence[str], query: str) -> None:
        """Assign the row of a query of `_ROW` to variables, and drop that view."""
        names = self.scopes.with_variables(", ".join(variables))
        try:
            spark_sql(self.spark, f"SET VARIABLE ({names}) = ({query})")
        finally:
            self.spark.catalog.dropTempView(_ROW)

    def _run_for(self, loop: For) -> None:
        rows = self._snapshot(loop.query)
        columns = rows.schema
        self._check_columns(loop, columns)
        names = [quoted([name]) for name in columns.names]
        with self.scopes.entered(loop.variable):
            for column in columns.fields:
                self.scopes.declare((column.name,), type_text(column.dataType))
            for row in local_rows(rows):
                show_row(self.spark, row, columns, _ROW)
                self._assign_row(names, f"SELECT {', '.join(names)} FROM {_ROW}")
                if not self._turn(loop.body, loop.label):
                    return

    def _check_columns(self, loop: For, columns: StructType) -> None:
        """Refuse columns with the names of variables of the session, or of each other.

        Raises:
            QueryError: The message has the column.
        """
        names: set[str] = set()
        for name in columns.names:
            if name.lower() in names or (not self.scopes.has_variable(name) and _is_variable(self.spark, name)):
                raise QueryError(
                    f"the column {name!r} of {loop.query!r} has the name of a variable of the session or of another "
                    "column; rename it by AS"
                )
            names.add(name.lower())


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
