"""Input of all steps of planning a scan, and the columns and path values that follow from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import PartitionValues
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.pruning.partition_pruning import prune_paths
from pyhudi.read.pruning.pruner_protocol import Predicate
from pyhudi.read.query.query import Query
from pyhudi.read.schema.partition_values import PathColumns, decode_paths, partition_column_values
from pyhudi.read.schema.table_columns import TableSchema, path_columns, query_columns
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True, slots=True)
class FilterSession:
    """Settings of a session that determine the meaning of a filter.

    Attributes:
        zone: Time zone of dates and times in the filter that have none.
        overridden_functions: Names of functions in the filter that the session has redefined.
    """

    zone: dt.tzinfo = dt.UTC
    overridden_functions: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class PlanningContext:
    """Input of all steps of planning a query: the query, options of the read, and the session of the filter."""

    query: Query
    opts: Options
    session: FilterSession

    def columns(self, table: TableSnapshot, table_schema: TableSchema | None) -> pa.Schema:
        """Return all columns; that of a timestamp generator is a text if it is taken from paths."""
        if table_schema is None:
            return pa.schema([])
        return query_columns(table, table_schema.schema, partitions_from_path=self.query.partitions_from_path)

    def path_columns(self, table: TableSnapshot, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns whose values must come from paths."""
        return path_columns(table, schema, partitions_from_path=self.query.partitions_from_path)

    def uses_path_values(self, path_columns: tuple[str, ...]) -> bool:
        """Return True if partition columns have the values of paths if these determine them; otherwise files may have
        any."""
        return bool(path_columns) or self.opts.get_typed(options.READ_PARTITION_VALUES) is not PartitionValues.FILE

    def bind_filter(
        self, row_filter: RowFilter | None, table: TableSnapshot, table_schema: TableSchema | None
    ) -> RowFilter | None:
        """Return a filter for the types of the columns, once these are known."""
        return (
            row_filter
            if row_filter is None or table_schema is None
            else row_filter.bind(self.columns(table, table_schema), self.session.zone)
        )

    def prune_by_path(self, predicate: Predicate, paths: list[str]) -> list[str]:
        """Return those of the partitions, given by path, that may hold matching rows according to their paths."""
        table, implied, schema = predicate.table, predicate.filter.implied, predicate.schema
        if implied is None or implied.sql is not None or not schema.names:
            return paths
        if not self.uses_path_values(self.path_columns(table, schema)):
            return paths
        values = decode_paths(table.config, schema, paths)
        remaining: list[str] = prune_paths(table.config, schema, values, implied)["partition"].to_pylist()
        return remaining

    def path_values(self, table: TableSnapshot, schema: pa.Schema, partitions: pa.Table) -> PathColumns:
        """Return the partition columns whose values are taken from paths; none that files have if the read uses those
        of files."""
        required = self.path_columns(table, schema)
        from_path = self.uses_path_values(required)
        values = partition_column_values(table.config, schema, partitions, required) if from_path else {}
        return PathColumns(partitions, required, values)
