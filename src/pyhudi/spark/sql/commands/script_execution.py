"""Execution of scripts (``BEGIN … END`` of Spark 4) that use Hudi tables.

Each statement is run as by ``spark.sql``. Local variables are variables of the session while the script runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructType

from pyhudi.errors import HudiError, QueryError, SqlSyntaxError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.commands.script_rows import ScriptCursor, local_rows, show_row
from pyhudi.spark.sql.queries.view_registry import session_id
from pyhudi.spark.sql.spark_statements import collect_statement, empty_result, type_text
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.script_conditions import ErrorCondition
from pyhudi.sql.script_nodes import (
    Assign,
    Block,
    CloseCursor,
    Declare,
    DeclareCursor,
    FetchCursor,
    For,
    Handler,
    If,
    Jump,
    Loop,
    Node,
    Nodes,
    OpenCursor,
    Run,
    nodes_of,
)
from pyhudi.sql.statements import ExecuteImmediate, SelectStatement
from pyhudi.sql.string_literals import string_expression

_RunSql: TypeAlias = Callable[[str], DataFrame]
_ROW = "_pyhudi_row_of_script"
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
    """
    with _locks.setdefault(session_id(spark), RLock()):
        _check_names(spark, body)
        # an error is one of its statement, and Spark Connect resolves variables when rows are read
        reads_at_once = is_connect(spark) or any(isinstance(node, Block) and node.handlers for node in nodes_of(body))
        execution = _ScriptExecution(spark, run, reads_at_once=reads_at_once)
        execution.run(body)
    return empty_result(spark) if execution.result is None else execution.result


def _check_names(spark: SparkSession, body: Block) -> None:
    for name in (name for node in nodes_of(body) for name in _declared(node)):
        if _is_variable(spark, name):
            raise QueryError(
                f"the session has a variable {name!r}, as the script has: drop it, or take another name in the script"
            )


def _declared(node: Node) -> tuple[str, ...]:
    """Return the names of the variables that a node itself declares."""
    match node:
        case Declare(names=names):
            return names
        case For(variable=str(variable)) if variable:
            return (variable,)
    return ()


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


class _Jumped(Exception):  # noqa: N818
    """Control has left a loop or block, or goes to the next turn of a loop."""

    def __init__(self, jump: Jump) -> None:
        super().__init__(jump.label)
        self.jump = jump


class _Exited(Exception):  # noqa: N818
    """An EXIT handler has run, and control leaves its block.

    Attributes:
        depth: Number of blocks around that block.
    """

    def __init__(self, depth: int) -> None:
        super().__init__(depth)
        self.depth = depth


@dataclass(frozen=True, slots=True)
class _Turn:
    """The current turn of a FOR.

    Attributes:
        loop: The loop.
        schema: Columns of its query.
        view: The temporary view of the row.
    """

    loop: For
    schema: StructType
    view: str


@dataclass
class _ScriptExecution:
    """A script that is being run, with the result of the last query.

    Attributes:
        spark: The session.
        run_sql: Runs a statement.
        reads_at_once: Read the rows of each query when it is run, instead of before the next statement.
        result: The result of the last query.
        result_is_read: Its rows have been read.
        variables: Names of the variables of the blocks and loops that are being run.
        turns: Their turns of FOR.
        handlers: The handlers of each block that is being run. Those of the block of a handler that is being run, and
            of the blocks in it, do not count.
        unhandled: An error that none of them handles.
        cursors: The cursors that have been declared, by their names in lower case.
    """

    spark: SparkSession
    run_sql: _RunSql
    reads_at_once: bool = False
    result: DataFrame | None = None
    result_is_read: bool = False
    variables: list[str] = field(default_factory=list)
    turns: list[_Turn] = field(default_factory=list)
    handlers: list[tuple[Handler, ...]] = field(default_factory=list)
    unhandled: Exception | None = None
    cursors: dict[str, ScriptCursor] = field(default_factory=dict)

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
            condition = _condition_of(error)
            if condition is None or not (self._handle(condition) or condition.is_no_data):
                self.unhandled = error
                raise

    def _handle(self, condition: ErrorCondition) -> bool:
        """Run the handler for a condition, of the innermost block that has one. Return False if there is none."""
        for depth in reversed(range(len(self.handlers))):
            handler = condition.handler(self.handlers[depth])
            if handler is not None:
                break
        else:
            return False
        self.handlers, all_handlers = self.handlers[:depth], self.handlers
        try:
            self.run(handler.body)
        finally:
            self.handlers = all_handlers
        if not handler.continues:
            raise _Exited(depth)
        return True

    def _execute(self, node: Node) -> None:
        match node:
            case Run(text=text):
                is_query = self._is_query(text)
                rows = self._run(text)
                if is_query:
                    self.result = rows.localCheckpoint() if self.reads_at_once else rows
                    self.result_is_read = self.reads_at_once
            case Declare(names=names, clauses=clauses):
                self._declare(names, clauses)
            case Assign(text=text):
                self._run(f"SET VARIABLE {text}")
            case If(branches=branches, otherwise=otherwise):
                self._run_all(next((body for condition, body in branches if self._holds(condition)), otherwise))
            case Block():
                self._run_block(node)
            case Loop():
                self._run_loop(node)
            case For():
                self._run_for(node)
            case Jump():
                raise _Jumped(node)
            case DeclareCursor(name=name, query=query):
                self.cursors[name] = ScriptCursor(name, query)
            case OpenCursor(name=name, using=using):
                self._open(self.cursors[name], using)
            case FetchCursor(name=name, variables=variables):
                self._fetch(self.cursors[name], variables)
            case CloseCursor(name=name):
                self.cursors[name].close()

    def _run(self, text: str) -> DataFrame:
        """Run a statement, after the rows of the query before it have been read: it may fail, and the statement may
        change what it reads."""
        if self.result is not None and not self.result_is_read:
            self.result, self.result_is_read = self.result.localCheckpoint(), True
        return self.run_sql(text)

    def _is_query(self, text: str) -> bool:
        """Return True if a statement is a query, or EXECUTE IMMEDIATE of one."""
        try:
            statement = parse(text)
            if isinstance(statement, ExecuteImmediate) and not statement.into:
                statement = parse(str(collect_statement(self.spark, f"SELECT {statement.text}")[0][0]))
        except (PySparkException, SqlSyntaxError):  # which is raised when the statement is run
            return False
        return isinstance(statement, SelectStatement) and not statement.head

    def _run_all(self, nodes: Nodes) -> None:
        for node in nodes:
            self.run(node)

    def _declare(self, names: tuple[str, ...], clauses: str) -> None:
        for name in names:
            self._run(f"DECLARE OR REPLACE VARIABLE {quoted([name])} {clauses}")
            self.variables.append(name)

    def _drop_variables(self, before: int) -> None:
        """Drop the last variables. Columns of the loops around them that they have hidden get their values again."""
        names = self.variables[before:]
        for name in names:
            spark_sql(self.spark, f"DROP TEMPORARY VARIABLE IF EXISTS {quoted([name])}")
        del self.variables[before:]
        self._restore_hidden({name.lower() for name in names})

    def _run_block(self, block: Block) -> None:
        before, depth = len(self.variables), len(self.handlers)
        self.handlers.append(block.handlers)
        try:
            self._run_all(block.body)
        except _Jumped as jumped:
            if jumped.jump != Jump("LEAVE", block.label):
                raise
        except _Exited as exited:
            if exited.depth != depth:
                raise
        finally:
            self.handlers.pop()
            self._drop_variables(before)

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
        bound = f"EXECUTE IMMEDIATE {string_expression(cursor.query)} USING {using}" if using else cursor.query
        cursor.open(self._snapshot(bound))

    def _fetch(self, cursor: ScriptCursor, variables: Sequence[str]) -> None:
        """Assign the next row to variables, or to one that is a struct."""
        query = cursor.fetch(self.spark, variables, _ROW)
        try:
            spark_sql(self.spark, f"SET VARIABLE ({', '.join(variables)}) = ({query})")
        finally:
            self.spark.catalog.dropTempView(_ROW)

    def _run_for(self, loop: For) -> None:
        rows = self._snapshot(loop.query)
        turn = _Turn(loop, rows.schema, f"{_ROW}_{len(self.turns)}")
        before = len(self.variables)
        self._check_columns(turn)
        self.turns.append(turn)
        try:
            self._declare_row(turn)
            for row in local_rows(rows):
                show_row(self.spark, row, turn.schema, turn.view)
                self._assign_row(turn)
                if not self._turn(loop.body, loop.label):
                    return
        finally:
            self.turns.pop()
            self.spark.catalog.dropTempView(turn.view)
            self._drop_variables(before)

    def _check_columns(self, turn: _Turn) -> None:
        """Refuse columns with the names of other variables than columns of the loops around it, or of each other.

        Raises:
            QueryError: The message has the column.
        """
        columns = {name.lower() for around in self.turns for name in around.schema.names}
        variables = {turn.loop.variable.lower()}
        for name in turn.schema.names:
            if name.lower() in variables or (name.lower() not in columns and _is_variable(self.spark, name)):
                raise QueryError(
                    f"the column {name!r} of {turn.loop.query!r} has the name of a variable or of another column; "
                    "rename it by AS"
                )
            variables.add(name.lower())

    def _declare_row(self, turn: _Turn) -> None:
        for column in turn.schema.fields:
            self._declare((column.name,), type_text(column.dataType))
        if turn.loop.variable:
            self._declare((turn.loop.variable,), type_text(turn.schema))

    def _assign_row(self, turn: _Turn) -> None:
        for name in turn.schema.names:
            spark_sql(self.spark, f"SET VARIABLE {quoted([name])} = (SELECT {quoted([name])} FROM {turn.view})")
        if turn.loop.variable:
            spark_sql(self.spark, f"SET VARIABLE {quoted([turn.loop.variable])} = (SELECT struct(*) FROM {turn.view})")

    def _restore_hidden(self, hidden: Collection[str]) -> None:
        """Give columns of the current loops with some lower-case names their values again."""
        for around in self.turns:
            for column in around.schema.fields:
                if column.name.lower() in hidden:
                    name = quoted([column.name])
                    spark_sql(self.spark, f"DECLARE OR REPLACE VARIABLE {name} {type_text(column.dataType)}")
                    spark_sql(self.spark, f"SET VARIABLE {name} = (SELECT {name} FROM {around.view})")
