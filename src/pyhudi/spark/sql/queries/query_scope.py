"""Scope of a query: resolution of its names, and the use of the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pyspark.sql import SparkSession

from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.queries.view_registry import folded
from pyhudi.sql.statements import Name
from pyhudi.sql.token_cursor import Cursor

RefreshedViews: TypeAlias = dict[Name, "RewrittenQuery | None"]


@dataclass(frozen=True, slots=True)
class QueryScope:
    """Resolution of the names in a query, and the use of the query.

    Attributes:
        namespace: The database of names without one, with its catalog if it has one; None: the current one.
        temporary: Lower-case names that refer to temporary views; None: those of all existing ones.
        prunes: Suffix of the names of the views, whose files are pruned by the conditions of the query; empty: no
            pruning, and queries share views.
        persistent: Spark stores the query, as that of a temporary view.
        options: The session's settings of Apache Hudi; None: the current ones.
        session: The session whose views replace tables (`session_id`); None: this one.
        args: Values of the parameters of the query.
        refreshed: Queries of the temporary views that have been refreshed, by name.
        resolves_only: Find the tables, and leave the views that stand for them as they are.
    """

    namespace: Name | None = None
    temporary: frozenset[Name] | None = None
    prunes: str = ""
    persistent: bool = False
    options: Mapping[str, str] | None = None
    session: str | None = None
    args: Any = None
    refreshed: RefreshedViews = field(default_factory=dict)
    resolves_only: bool = False

    def is_temporary(self, name: Name) -> bool:
        """Return True if a name refers to a temporary view, whether or not it still exists."""
        return self.temporary is not None and folded(name) in self.temporary

    def qualified(self, spark: SparkSession, name: Name) -> Name:
        """Return a name that does not depend on the current database and catalog."""
        return name if self.is_temporary(name) else qualified_name(spark, name, self.namespace)


class Rewrite(Protocol):
    """Function that replaces the Hudi tables of a query by views."""

    def __call__(self, query: str, scope: QueryScope, *, double_quoted: bool | None = None) -> RewrittenQuery:
        """Rewrite a query.

        Args:
            query: The text.
            scope: Its scope.
            double_quoted: Double quotes enclose names in it; None: as in the session.
        """


def qualified_name(spark: SparkSession, name: Name, namespace: Name | None) -> Name:
    """Return a name of the query of a permanent view, independent of the current database and catalog."""
    if namespace is None or len(name) > 2:
        return name
    if len(namespace) == 1 or str(spark.catalog.currentCatalog()) == namespace[0]:
        return name if len(name) == 2 else (namespace[-1], *name)
    if len(name) == 1:
        return (*namespace, *name)
    full = (namespace[0], *name)
    return full if spark.catalog.databaseExists(quoted(full[:2])) else name


def parse_table_name(table: str) -> Name:
    """Parse the name of a table or view.

    Raises:
        SqlSyntaxError: The text is not a table name.
    """
    cursor = Cursor(table)
    name = cursor.name()
    cursor.finish()
    return name
