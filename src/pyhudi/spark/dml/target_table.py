"""Target table of an UPDATE, DELETE or MERGE with its rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, TableType
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.planning_context import FilterSession
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.spark.dml.target_snapshot import TargetSnapshot, top_columns
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.keys.deduplication import delete_marker_columns
from pyhudi.spark.read.dataframe_reader import dataframe, positioned_rows
from pyhudi.spark.read.pruning.overridden_functions import overridden_in_filter
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.spark_types import null_columns, spark_schema
from pyhudi.spark.write.dml_commit import RowLocations, RowPositions
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.transaction.conflicts.changed_groups import GROUP_SCHEMA
from pyhudi.transaction.conflicts.serializable_reads import ReadSet
from pyhudi.write.location_columns import FILE_ID, ROW_POSITION
from pyhudi.write.settings.write_settings import records_positions


@dataclass(frozen=True, slots=True)
class TargetTable(TargetSnapshot):
    """Table with the rows that a statement reads.

    Attributes:
        rows: The rows: the table's own columns and ``helpers``.
        reads: The read set of ``rows``.
        locations: Locations of the rows; None: they have only their keys and partition paths.
        plan: The file slices that are read.
    """

    rows: DataFrame
    reads: ReadSet
    locations: RowLocations | None
    plan: ScanPlan

    @property
    def helpers(self) -> list[str]:
        """Columns of ``rows`` that are not the table's own: `STORED_KEY`, `STORED_PATH`, and their locations."""
        if self.locations is None:
            return [STORED_KEY, STORED_PATH]
        positions = [] if self.locations.positions is RowPositions.NONE else [ROW_POSITION]
        return [STORED_KEY, STORED_PATH, FILE_ID, *positions]

    @property
    def has_positions(self) -> bool:
        """True if all rows have their positions, by which base files are rewritten."""
        return self.locations is not None and self.locations.positions is RowPositions.ALL

    @property
    def delete_markers(self) -> frozenset[str]:
        """Columns whose values mark rows as deletes."""
        return delete_marker_columns(self.schema, self.merging)

    def unassigned(self, assigned: Collection[str]) -> frozenset[str]:
        """Return the columns that an update may omit, because their stored values are copied when base files are
        rewritten: all except assigned ones and those that decide between versions of a record.

        Args:
            assigned: Columns that the update assigns.
        """
        merging = self.merging
        if not self.has_positions or merging.combines_versions:
            return frozenset()
        needed = top_columns((name for names in merging.deciding_columns.values() for name in names), self.schema)
        if not self.key_columns.isdisjoint(assigned):
            needed |= self.key_columns  # The key is recomputed.
        return self.nullable.intersection(self.schema.names) - needed - frozenset(assigned)

    def absent(self, columns: Collection[str]) -> dict[str, Column]:
        """Return a null of the right type for each of these columns."""
        return null_columns(field for field in self.schema.fields if field.name in columns)

    @property
    def deletion_columns(self) -> list[str]:
        """Columns that are required to delete a row."""
        needed = self.placing_columns | self.ordering_of_deletes
        names = [name for name in self.schema.names if name in needed]
        return names or self.schema.names[:1]  # A DataFrame needs at least one column of the table.


def read_target(spark: SparkSession, pinned: TargetSnapshot, where: str | None = None) -> TargetTable:
    """Return a table with its rows.

    Args:
        spark: The session.
        pinned: The table.
        where: SQL condition on the table's own columns. Only rows that meet it are read, from file groups that may
            contain such rows.
    """
    client, opts, table = pinned.client, pinned.opts, pinned.table
    rows = None if where is None else RowFilter.parse(where)
    session = FilterSession(overridden_functions=overridden_in_filter(spark, table.config, rows))

    def plan(now: TableSnapshot) -> ScanPlan:
        return plan_scan(now, filter=rows, opts=opts, session=session)

    def replan(active: ActiveTimeline) -> pa.Table:
        return _groups(plan(TableSnapshot(table.storage, table.config, active)))

    planned = plan(table)
    schema = spark_schema(remove_meta_columns(planned.schema))
    located = client.config.populate_meta_fields and opts.get_typed(options.INDEX_TYPE) is not IndexType.BUCKET
    positions, read = _positions(client, opts) if located else RowPositions.NONE, None
    if positions is not RowPositions.NONE:
        read = positioned_rows(SparkScan(spark, table, planned, opts))
    groups = planned.tasks.select(["partition", "file_id", "base_path"])
    locations = RowLocations(groups, RowPositions.NONE if read is None else positions) if located else None
    read = dataframe(SparkScan(spark, table, planned, opts)) if read is None else read
    stored = pinned.identified_rows(read, schema, located=located)
    reads = ReadSet.of_snapshot(table.active.timeline, _groups(planned), replan)
    keys = (pinned.spec, schema, pinned.nullable, pinned.recomputes_keys)
    return TargetTable(client, opts, table, *keys, stored, reads, locations, planned)


def _positions(client: TableMetaClient, opts: Options) -> RowPositions:
    """Return the positions of rows that a write to the table uses."""
    config = client.config
    if config.table_type is TableType.COPY_ON_WRITE:
        return RowPositions.ALL
    return RowPositions.KNOWN if records_positions(config, opts) else RowPositions.NONE


def _groups(plan: ScanPlan) -> pa.Table:
    return pa.Table.from_arrays([plan.tasks["partition"], plan.tasks["file_id"]], schema=GROUP_SCHEMA)
