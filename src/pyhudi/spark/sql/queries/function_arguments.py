"""Arguments of table functions in queries: names of tables are resolved, and expressions evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import CatalogTable, find, full_name
from pyhudi.spark.sql.queries.functions.table_functions import locate
from pyhudi.spark.sql.queries.functions.vector_functions import ordered_arguments, table_positions
from pyhudi.spark.sql.queries.query_scope import QueryScope, Rewrite, parse_table_name
from pyhudi.spark.sql.queries.query_sources import FunctionSource
from pyhudi.spark.sql.queries.view_registry import is_temporary
from pyhudi.spark.sql.spark_statements import collect_statement
from pyhudi.sql.statements import Name
from pyhudi.sql.table_function_calls import VECTOR_FUNCTIONS


@dataclass(frozen=True, slots=True)
class ResolvedFunction:
    """A table function whose arguments no longer depend on the session.

    Attributes:
        source: The function with its arguments.
        views: Names of temporary views in its arguments, and unresolved names, which may become views.
    """

    source: FunctionSource
    views: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class _NamedTable:
    """A table or view that an argument names: its qualified name or path, the locations of its Hudi tables, and the
    names among `ResolvedFunction.views`."""

    name: str
    locations: frozenset[str]
    views: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionResolver:
    """Resolves table functions of one query.

    Attributes:
        spark: The session.
        scope: Scope of the query.
        rewrite: Rewrites another query.
    """

    spark: SparkSession
    scope: QueryScope
    rewrite: Rewrite

    def resolve(self, function: str, arguments: tuple[str, ...]) -> ResolvedFunction:
        """Return a function with its evaluated arguments, in the order of its parameters.

        Args:
            function: Name of the function in lower case.
            arguments: Texts of its arguments.

        Raises:
            QueryError: A vector function has a parameter by position, lacks an argument, or has no such parameter.
        """
        if function in VECTOR_FUNCTIONS:
            return self._vector_function(function, arguments)
        if not arguments:
            return ResolvedFunction(FunctionSource(function, ()))  # which is refused
        table, *others = arguments
        if self.scope.namespace is not None and "/" not in table:
            table = quoted(self.scope.qualified(self.spark, parse_table_name(table)))
        location = locate(self.spark, table)
        return ResolvedFunction(FunctionSource(function, (location, *others), (location,)))

    def _vector_function(self, function: str, arguments: tuple[str, ...]) -> ResolvedFunction:
        texts = ordered_arguments(function, arguments)
        if any(text.strip() == "?" for text in texts):
            raise QueryError(f"{function} has a parameter by position; name it, as :query")
        values, views = self._evaluated(texts)
        locations: set[str] = set()
        for position in table_positions(function):
            value = values[position]
            if isinstance(value, str):
                table = self._named_table(value)
                values[position] = table.name
                locations |= table.locations
                views += table.views
        return ResolvedFunction(FunctionSource(function, tuple(values), tuple(sorted(locations))), views)

    def _evaluated(self, texts: tuple[str, ...]) -> tuple[list[object], tuple[Name, ...]]:
        """Return the values of expressions, which may be subqueries, and the names of the views in them."""
        named = self.scope.args if isinstance(self.scope.args, Mapping) else None
        inner = self.rewrite(f"SELECT {', '.join(texts)}", replace(self.scope, prunes="", args=named))
        row: Any = collect_statement(self.spark, inner.text, named)[0]
        return [tuple(value) if isinstance(value, list) else value for value in row], inner.views

    def _named_table(self, table: str) -> _NamedTable:
        if "/" in table:
            return _NamedTable(table, frozenset({table}))
        spark = self.spark
        name = self.scope.qualified(spark, parse_table_name(table))
        entry = find(spark, name)
        views: tuple[Name, ...] = ()
        if entry is not None or (
            len(name) == 1 and spark.catalog.tableExists(quoted(name)) and not is_temporary(spark, name)
        ):
            name = full_name(spark, name)
        else:
            views = (name,)
        if isinstance(entry, CatalogTable):
            return _NamedTable(quoted(name), frozenset({entry.location}), views)
        rows = self.rewrite(f"SELECT * FROM {quoted(name)}", QueryScope())
        return _NamedTable(quoted(name), rows.locations, views)
