"""Execution of scripts (``BEGIN … END`` of Spark 4) that use Hudi tables.

Each statement is run as by ``spark.sql``. Local variables are variables of the session while the script runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from threading import RLock
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructType

from pyhudi.errors import QueryError, SqlSyntaxError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.queries.view_registry import session_id
from pyhudi.spark.sql.spark_statements import collect_statement, empty_result, type_text
from pyhudi.spark.sql.typed_values import cast_columns, with_seconds
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.script_nodes import Assign, Block, Declare, For, If, Jump, Loop, Node, Nodes, Run
from pyhudi.sql.statements import ExecuteImmediate, SelectStatement

_RunSql: TypeAlias = Callable[[str], DataFrame]
_ROW = "_pyhudi_row_of_script"
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
        execution = _ScriptExecution(spark, run)
        execution.run(body)
    return empty_result(spark) if execution.result is None else execution.result


def _check_names(spark: SparkSession, body: Block) -> None:
    for name in _declared(body):
        if _is_variable(spark, name):
            raise QueryError(
                f"the session has a variable {name!r}, as the script has: drop it, or take another name in the script"
            )


def _declared(node: Node) -> list[str]:
    """Return the names of all variables of a script."""
    match node:
        case Declare(names=names):
            return list(names)
        case Block(body=body) | Loop(body=body):
            return [name for inner in body for name in _declared(inner)]
        case For(body=body, variable=variable):
            return [variable] * bool(variable) + [name for inner in body for name in _declared(inner)]
        case If(branches=branches, otherwise=otherwise):
            bodies = [*(body for _, body in branches), otherwise]
            return [name for body in bodies for inner in body for name in _declared(inner)]
    return []


def _is_variable(spark: SparkSession, name: str) -> bool:
    try:
        spark_sql(spark, f"SELECT system.session.{quoted([name])}")
    except PySparkException:
        return False
    return True


class _Jumped(Exception):  # noqa: N818
    """Control has left a loop or block, or goes to the next turn of a loop."""

    def __init__(self, jump: Jump) -> None:
        super().__init__(jump.label)
        self.jump = jump


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
    """A script that is being run, with the result of the last query."""

    spark: SparkSession
    run_sql: _RunSql
    result: DataFrame | None = None
    result_is_read: bool = False
    variables: list[str] = field(default_factory=list)
    turns: list[_Turn] = field(default_factory=list)

    def run(self, node: Node) -> None:
        match node:
            case Run(text=text):
                is_query = self._is_query(text)
                rows = self._run(text)
                if is_query:
                    self.result, self.result_is_read = rows, False
            case Declare(names=names, clauses=clauses):
                self._declare(names, clauses)
            case Assign(text=text):
                self._run(f"SET VARIABLE {text}")
            case If(branches=branches, otherwise=otherwise):
                self._run_all(next((body for condition, body in branches if self._holds(condition)), otherwise))
            case Block(body=body, label=label):
                self._run_block(body, label)
            case Loop():
                self._run_loop(node)
            case For():
                self._run_for(node)
            case Jump():
                raise _Jumped(node)

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

    def _run_block(self, body: Nodes, label: str) -> None:
        before = len(self.variables)
        try:
            self._run_all(body)
        except _Jumped as jumped:
            if jumped.jump != Jump("LEAVE", label):
                raise
        finally:
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

    def _run_for(self, loop: For) -> None:
        rows = self._run(loop.query)
        turn = _Turn(loop, rows.schema, f"{_ROW}_{len(self.turns)}")
        before = len(self.variables)
        self._check_columns(turn)
        self.turns.append(turn)
        try:
            self._declare_row(turn)
            seconds = with_seconds(rows.schema)
            for row in cast_columns(rows, seconds).toLocalIterator():
                one = self.spark.createDataFrame([row], seconds)
                cast_columns(one, rows.schema).createOrReplaceTempView(turn.view)
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
