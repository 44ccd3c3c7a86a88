"""Tables of one query that are joined: views of them without the files that contain none of the join keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.sql.queries.dynamic_file_pruning import TableRead, runtime_filter
from pyhudi.spark.sql.queries.query_sources import ViewSource
from pyhudi.sql.table_references import Reference


class JoinedTables:
    """Hudi tables that a query reads, by the positions of their references.

    Args:
        spark: The session.
        create_view: Creates the view of a table; given an identity of the view, and its source. Returns its SQL name.
    """

    def __init__(self, spark: SparkSession, create_view: Callable[[str, ViewSource], str]) -> None:
        self._spark, self._create_view = spark, create_view
        self._sources: dict[int, ViewSource] = {}
        self._reads: dict[int, TableRead] = {}

    def __len__(self) -> int:
        return len(self._reads)

    def add(self, reference: Reference, source: ViewSource, rows: DataFrame) -> None:
        """Add a table, with the rows of the snapshot that the query reads."""
        self._sources[reference.start] = source
        self._reads[reference.start] = TableRead(rows, reference.predicate)

    def pruned_view(self, reference: Reference) -> str | None:
        """Create a view of a table without the files that contain none of the join keys. Return its SQL name; None if
        there is no runtime filter. May run small Spark jobs."""
        source = self._sources.get(reference.start)
        if source is None or not reference.joined:
            return None
        keys = runtime_filter(self._spark, self._reads[reference.start].rows, reference.joined, self._reads)
        if keys is None:
            return None
        predicate = keys if source.predicate is None else f"({source.predicate}) AND {keys}"
        identity = f"{source.location} {source.options} joined {reference.start}"
        return self._create_view(identity, replace(source, predicate=predicate))
