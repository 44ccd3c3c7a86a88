"""Scopes of a script that is being run: the variables, cursors and handlers of its blocks and loops.

Variables of a script are variables of the session. While one of them is hidden by another one of its name, or is out of
scope because a handler of a block around it is run, a variable of the session with another name keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import SparkSession

from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.scripts.script_rows import ScriptCursor
from pyhudi.sql.scripts.script_conditions import ErrorCondition
from pyhudi.sql.scripts.script_defaults import default_value
from pyhudi.sql.scripts.script_labels import with_variables
from pyhudi.sql.scripts.script_nodes import Handler

_SESSION = ("system", "session")
_numbers = count()


@dataclass(eq=False, slots=True)
class _Variable:
    """A variable.

    Attributes:
        name: Its name.
        clauses: Its type and default value, as in its declaration.
        kept_as: The variable of the session that keeps its value, while it does not have its name.
    """

    name: str
    clauses: str
    kept_as: str = ""


@dataclass(eq=False, slots=True)
class Scope:
    """A block, or the rows of a FOR, that is being run.

    Attributes:
        label: Its label in lower case; empty if it has none.
        handlers: Its handlers.
        variables: Its variables, by names in lower case.
        cursors: Its cursors, by names in lower case.
    """

    label: str
    handlers: tuple[Handler, ...]
    variables: dict[str, _Variable] = field(default_factory=dict)
    cursors: dict[str, ScriptCursor] = field(default_factory=dict)


class ScriptScopes:
    """The scopes around the statement that is being run.

    Args:
        spark: The session.
        run: Runs a statement.
    """

    def __init__(self, spark: SparkSession, run: Callable[[str], object]) -> None:
        self._spark = spark
        self._run = run
        self._scopes: list[Scope] = []
        self._shown: dict[str, _Variable] = {}
        self._handling: list[Scope] = []

    @contextmanager
    def entered(self, label: str, handlers: tuple[Handler, ...] = ()) -> Iterator[Scope]:
        """Return a context manager for a scope. Its variables are dropped at the end, and those that they have hidden
        have their names again."""
        scope = Scope(label, handlers)
        self._scopes.append(scope)
        try:
            yield scope
        finally:
            self._scopes.pop()
            for key, variable in scope.variables.items():
                self._drop(variable.kept_as or variable.name)
                if self._shown.get(key) is variable:
                    del self._shown[key]
            self._show(scope.variables)

    def declare(self, names: Sequence[str], clauses: str) -> None:
        """Declare variables of the current scope, which may hide others.

        Args:
            names: Their names.
            clauses: Their type and default value.
        """
        with_labels_replaced = self.with_variables(clauses)
        hidden = [self._shown[name.lower()] for name in names if name.lower() in self._shown]
        for variable in hidden:
            self._keep(variable)
        try:
            declared = ", ".join(quoted([name]) for name in names)
            self._run(f"DECLARE OR REPLACE VARIABLE {declared} {with_labels_replaced}")
        except BaseException:
            for variable in hidden:  # its name is still its own
                self._drop(variable.kept_as)
                variable.kept_as = ""
            raise
        for name in names:
            self._scopes[-1].variables[name.lower()] = self._shown[name.lower()] = _Variable(name, clauses)

    def has_variable(self, name: str) -> bool:
        """Return True if a variable is in scope."""
        return name.lower() in self._shown

    def default(self, name: Sequence[str]) -> str | None:
        """Return the default value of a variable in scope; None if there is no such variable. ``name``: its name, after
        the label of its block if it has one."""
        *label, key = (part.lower() for part in name)
        if not label:
            variable = self._shown.get(key)
        else:
            scopes = (scope for scope in reversed(self._scopes) if [scope.label] == label and key in scope.variables)
            variable = next((scope.variables[key] for scope in scopes), None)
        return None if variable is None else default_value(variable.clauses)

    def with_variables(self, text: str) -> str:
        """Return a statement with names of variables of the session in place of those with labels."""
        return with_variables(text, self._session_variable) if any(scope.label for scope in self._scopes) else text

    def declare_cursor(self, cursor: ScriptCursor) -> None:
        """Declare a cursor of the current scope."""
        self._scopes[-1].cursors[cursor.name] = cursor

    def cursor(self, name: Sequence[str]) -> ScriptCursor:
        """Return a cursor in scope. ``name``: its name, after the label of its block if it has one."""
        *label, key = name
        return next(
            scope.cursors[key]
            for scope in reversed(self._scopes)
            if key in scope.cursors and (not label or [scope.label] == label)
        )

    def handler(self, condition: ErrorCondition) -> tuple[Scope, Handler] | None:
        """Return the handler for a condition, of the innermost scope that has one, with that scope. Those of a block
        whose handler is being run, and of blocks in it, do not count."""
        for scope in reversed(self._scopes):
            handler = None if scope in self._handling else condition.handler(scope.handlers)
            if handler is not None:
                return scope, handler
        return None

    @contextmanager
    def back_in(self, scope: Scope, *, returns: bool) -> Iterator[None]:
        """Return a context manager for a handler of a scope: it does not see variables of the scopes inside.

        Args:
            scope: The scope.
            returns: Control returns to the scopes inside.
        """
        at = self._scopes.index(scope) + 1
        self._scopes, inside = self._scopes[:at], self._scopes[at:]
        self._handling.append(scope)
        names = {key for one in inside for key in one.variables}
        try:
            self._show(names)
            yield
        finally:
            self._handling.pop()
            self._scopes += inside
        if returns:
            self._show(names)

    def _show(self, keys: Iterable[str]) -> None:
        """Give some names (in lower case) to the variables that have them in the current scope."""
        for key in keys:
            shown = self._shown.pop(key, None)
            wanted = next((scope.variables[key] for scope in reversed(self._scopes) if key in scope.variables), None)
            if shown is not None and shown is not wanted:
                self._keep(shown)
                self._drop(shown.name)
            if wanted is None:
                continue
            if wanted.kept_as:
                self._restore(wanted)
            self._shown[key] = wanted

    def _keep(self, variable: _Variable) -> None:
        kept_as = f"_pyhudi_variable_{next(_numbers)}"
        self._copy(variable.name, kept_as)
        variable.kept_as = kept_as

    def _restore(self, variable: _Variable) -> None:
        """Give a variable its name."""
        self._copy(variable.kept_as, variable.name)
        self._drop(variable.kept_as)
        variable.kept_as = ""

    def _copy(self, source: str, target: str) -> None:
        value = quoted([*_SESSION, source])
        spark_sql(self._spark, f"DECLARE OR REPLACE VARIABLE {quoted([target])} DEFAULT {value}")

    def _drop(self, name: str) -> None:
        spark_sql(self._spark, f"DROP TEMPORARY VARIABLE IF EXISTS {quoted([name])}")

    def _session_variable(self, label: str, name: str) -> str | None:
        """Return the name in the session of a variable with a label; None if there is no such variable."""
        for scope in reversed(self._scopes):
            variable = scope.variables.get(name.lower()) if scope.label == label.lower() else None
            if variable is not None:
                return quoted([*_SESSION, variable.kept_as or variable.name])
        return None
