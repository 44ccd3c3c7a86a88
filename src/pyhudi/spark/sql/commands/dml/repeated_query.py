"""Queries of a statement that each of its attempts runs again, on the latest snapshots of Hudi tables."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.view_registry import is_temporary
from pyhudi.sql.statements import Name
from pyhudi.storage import Storage
from pyhudi.storage.canonical_uri import canonical_uri

_WHERE = "SELECT 1 FROM _pyhudi_nothing WHERE "


class RepeatedQuery:
    """Query of a statement: each attempt runs it on the latest snapshots of Hudi tables."""

    def __init__(self, spark: SparkSession, text: str, storage: Storage) -> None:
        self._spark = spark
        self._text = text
        self._rows: DataFrame | None = None
        self.storage = storage

    def rows(self) -> DataFrame:
        """Run the query on the latest snapshots and return its rows."""
        self._rows = _latest_rows(self._spark, self._text)
        return self._rows

    def reads_same_snapshot(self) -> bool:
        """Return True if the query still reads the snapshot of the target that the last attempt read."""
        return self._rows is not None and _reads_same_snapshot(self._spark, self._text, self.storage, self._rows)


class RepeatedSubqueries:
    """Subqueries of a statement, rewritten in each attempt. The target is pinned first, so they never read an older
    snapshot of it."""

    def __init__(self, spark: SparkSession, table: CatalogTable, storage: Storage) -> None:
        self._spark = spark
        self._location = canonical_uri(table.location)
        self._views: set[Name] = set()
        self.storage = storage
        self.read_target = False

    def rewritten(self, expression: str) -> str:
        """Return an expression in which views replace the Hudi tables of its subqueries."""
        if "(" not in expression:
            return expression  # without a subquery or a call, which needs no parser
        prepared = rewrite_query(self._spark, _WHERE + expression)
        self.read_target |= any(canonical_uri(location) == self._location for location in prepared.locations)
        self._views.update(prepared.views)
        return prepared.text[len(_WHERE) :]

    def read_same_snapshot(self) -> bool:
        """Return True if a subquery reads the target by a temporary view of an older snapshot."""
        views = (quoted(name) for name in self._views if is_temporary(self._spark, name))
        return any(_reads_same_snapshot(self._spark, f"SELECT * FROM {view}", self.storage) for view in views)


def _reads_same_snapshot(spark: SparkSession, query: str, storage: Storage, last: DataFrame | None = None) -> bool:
    """Return True if a query still reads the same snapshot of a table: by a temporary view of a loaded DataFrame, or as
    files.

    Args:
        spark: The session.
        query: The query.
        storage: Storage of the table.
        last: The rows that the query returned last; None: those of its views without a refresh.
    """
    before = snapshot_ids(spark_sql(spark, query) if last is None else last, storage)
    return bool(before) and not before.isdisjoint(snapshot_ids(_latest_rows(spark, query), storage))


def _latest_rows(spark: SparkSession, query: str) -> DataFrame:
    """Return the rows of a query, of the latest snapshots of Hudi tables."""
    return spark_sql(spark, rewrite_query(spark, query).text)
