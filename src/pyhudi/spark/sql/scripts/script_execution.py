"""Execution of scripts (``BEGIN … END`` of Spark 4) that use Hudi tables.

Each statement is run as by ``spark.sql``. Local variables are variables of the session while the script runs.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from threading import RLock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.queries.view_registry import session_id
from pyhudi.spark.sql.scripts.script_checks import check_script, is_session_variable
from pyhudi.spark.sql.scripts.script_errors import handled_condition
from pyhudi.spark.sql.scripts.script_rows import ScriptCursor, local_rows
from pyhudi.spark.sql.scripts.script_scopes import Scope, ScriptScopes
from pyhudi.spark.sql.scripts.script_statements import RunSql, ScriptStatements
from pyhudi.spark.sql.spark_statements import empty_result, type_text
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
)

_locks: dict[str, RLock] = {}
"""Locks of the sessions, whose variables are those of one script at a time; a script may run another one."""


def run_script(spark: SparkSession, body: Block, run: RunSql) -> DataFrame:
    """Run a script. As in Spark, the statements before one that fails have been run then. Scripts that threads of one
    session run at the same time wait for each other.

    Returns:
        The result of the last query; no columns if there is none.

    Raises:
        QueryError: A variable of the session has the name of one of the script, and nothing has run; or a condition is
            no BOOLEAN.
        SqlSyntaxError: A handler is for a condition that there is not, and nothing has run.
    """
    with _locks.setdefault(session_id(spark), RLock()):
        check_script(spark, body)
        # an error is one of its statement, and Spark Connect resolves variables when rows are read
        reads_at_once = is_connect(spark) or any(isinstance(node, Block) and node.handlers for node in nodes_of(body))
        scopes = ScriptScopes(spark, run)
        statements = ScriptStatements(spark, run, scopes, reads_at_once=reads_at_once)
        _ScriptExecution(statements).run(body)
    return empty_result(spark) if statements.result is None else statements.result


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
    """Control flow of a script that is being run.

    Attributes:
        statements: Runs its statements.
        unhandled: An error that no handler handles.
    """

    statements: ScriptStatements
    unhandled: Exception | None = None

    @property
    def scopes(self) -> ScriptScopes:
        """The scopes around the statement that is being run."""
        return self.statements.scopes

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
            condition = handled_condition(node, error)
            if condition is None or not (self._handle(condition) or condition.is_no_data):
                self.unhandled = error
                raise

    def _handle(self, condition: ErrorCondition) -> bool:
        """Run the handler for a condition. Return False if there is none."""
        handler_in_scope = self.scopes.handler(condition)
        if handler_in_scope is None:
            return False
        scope, handler = handler_in_scope
        with self.scopes.back_in(scope, returns=handler.continues), suppress(_Exited):
            # as in Spark, an EXIT handler of a block around this one, for an error of this handler, leaves this handler
            self.run(handler.body)
        if not handler.continues:
            raise _Exited(scope)
        return True

    def _execute(self, node: Node) -> None:
        match node:
            case Run(text=text):
                self.statements.run_statement(text)
            case Declare(names=names, clauses=clauses):
                self.scopes.declare(names, clauses)
            case Assign(text=text):
                self.statements.run(f"SET VARIABLE {with_default_values(text, self.scopes.default)}")
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
                self.statements.open_cursor(self.scopes.cursor(name), using)
            case FetchCursor(name=name, variables=variables):
                self.statements.fetch(self.scopes.cursor(name), variables)
            case CloseCursor(name=name):
                self.scopes.cursor(name).close()

    def _run_all(self, nodes: Nodes) -> None:
        for node in nodes:
            self.run(node)

    def _run_branches(self, node: If) -> None:
        with self.statements.evaluated(node.value) as value:
            taken = (
                body for test, body in node.branches if self.statements.holds(f"{value} = ({test})" if value else test)
            )
            body = next(taken, node.otherwise)
        self._run_all(body)

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
        while not loop.condition or self.statements.holds(loop.condition):
            if not self._turn(loop.body, loop.label) or (loop.until and self.statements.holds(loop.until)):
                return

    def _run_for(self, loop: For) -> None:
        rows = self.statements.snapshot(loop.query)
        columns = rows.schema
        self._check_columns(loop, columns)
        names = [quoted([name]) for name in columns.names]
        with self.scopes.entered(loop.variable):
            for column in columns.fields:
                self.scopes.declare((column.name,), type_text(column.dataType))
            for row in local_rows(rows):
                self.statements.assign_columns(names, row, columns)
                if not self._turn(loop.body, loop.label):
                    return

    def _check_columns(self, loop: For, columns: StructType) -> None:
        """Refuse columns with the names of variables of the session, or of each other.

        Raises:
            QueryError: The message has the column.
        """
        names: set[str] = set()
        for name in columns.names:
            if name.lower() in names or (
                not self.scopes.has_variable(name) and is_session_variable(self.statements.spark, name)
            ):
                raise QueryError(
                    f"the column {name!r} of {loop.query!r} has the name of a variable of the session or of another "
                    "column; rename it by AS"
                )
            names.add(name.lower())
