"""A permanent view of Hudi tables in a query: its stored query, read with the settings and names of its definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.sql.catalog import CatalogView
from pyhudi.spark.sql.queries.query_scope import QueryScope, Rewrite
from pyhudi.spark.sql.queries.query_sources import QuerySource, query_rows
from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.queries.table_cache import CachedTable, cached_view, rows_of_view
from pyhudi.spark.sql.queries.view_settings import QUOTES_NAMES, other_settings, stored_settings
from pyhudi.sql.rewriting.identifier_clauses import with_plain_identifiers
from pyhudi.sql.statements import Name


@dataclass(frozen=True, slots=True)
class PermanentView:
    """A permanent view that a query reads.

    Attributes:
        spark: The session.
        stored: The view in the catalog.
        settings: Settings with which its query is analysed; empty: those of the session.
        quotes_names: Double quotes enclose names in its query.
        scope: Scope of its query.
        cached: Its cached rows; None: it is not cached.
        rewrite: Rewrites a query.
    """

    spark: SparkSession
    stored: CatalogView
    settings: Mapping[str, str]
    quotes_names: bool
    scope: QueryScope
    cached: CachedTable | None
    rewrite: Rewrite

    @classmethod
    def open(cls, spark: SparkSession, name: Name, stored: CatalogView, scope: QueryScope, *, rewrite: Rewrite) -> Self:
        """Return the view with a name.

        Args:
            spark: The session.
            name: The view's full name.
            stored: The view in the catalog.
            scope: Scope of the query that reads it; ``prunes`` is empty, or unique for this reference to the view.
            rewrite: Rewrites a query.
        """
        settings = stored_settings(spark, name, stored)
        others = other_settings(spark, settings)
        cached = None if scope.resolves_only else cached_view(spark, name, stored)
        # The conditions of the view must not be evaluated with the settings of the session, nor prune cached rows.
        prunes = "" if others or cached is not None else scope.prunes
        inner = replace(scope, namespace=stored.namespace, temporary=frozenset(), prunes=prunes, args=None)
        quotes_names = all(settings[key] == "true" for key in QUOTES_NAMES)
        return cls(spark, stored, settings if others else {}, quotes_names, inner, cached, rewrite)

    def rewritten(self) -> RewrittenQuery:
        """Return the rewritten query. The tables of a cached view are only resolved, because its rows may suffice."""
        return self._rewrite(self.scope if self.cached is None else replace(self.scope, resolves_only=True))

    def _rewrite(self, scope: QueryScope) -> RewrittenQuery:
        query = with_plain_identifiers(self.stored.query, double_quoted=self.quotes_names)
        return self.rewrite(query, scope, double_quoted=self.quotes_names)

    def source(self, query: RewrittenQuery) -> QuerySource:
        """Return the rewritten query as the source of a view."""
        return QuerySource(query.text, self.stored, tuple(self.settings.items()))

    def cached_rows(self, query: RewrittenQuery) -> DataFrame:
        """Return the rows of a view that is cached, of the latest snapshots of its tables. They are read if they are
        not in the cache yet."""
        assert self.cached is not None
        source = self.source(query)

        def load() -> DataFrame:
            self._rewrite(self.scope)  # creates the views that the query reads
            with query_rows(self.spark, source) as rows:
                return rows

        identity = (source, tuple(query.sources.values()))
        return rows_of_view(self.spark, self.cached, query.locations, identity, load)
