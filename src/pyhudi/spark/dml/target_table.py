"""Target table of an UPDATE, DELETE or MERGE, pinned at a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, MergeMode, PartitionValues, TableType
from pyhudi.errors import ConfigError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.planning_context import FilterSession
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.meta_fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.schema.table_types import as_nullable
from pyhudi.spark.column_names import quoted_name, select_names
from pyhudi.spark.helper_columns import SCANNED_ROW, STORED_KEY, STORED_PATH
from pyhudi.spark.keys.deduplication import delete_marker_columns
from pyhudi.spark.keys.key_generator import has_recomputable_keys, stored_record_key, with_keys
from pyhudi.spark.read.dataframe_reader import dataframe, positioned_rows
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.read.pruning.overridden_functions import overridden_in_filter
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.session import check_not_stopped
from pyhudi.spark.spark_types import null_columns, spark_schema
from pyhudi.spark.write.dml_commit import RowLocations, RowPositions
from pyhudi.spark.write.write_preparation import KeyedSnapshot, key_spec
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.transaction.conflicts.changed_groups import GROUP_SCHEMA
from pyhudi.transaction.conflicts.serializable_reads import ReadSet, partition_reads
from pyhudi.write.location_columns import FILE_ID, ROW_POSITION
from pyhudi.write.settings.write_settings import records_positions

_COMPARABLE_IN_DELETES = (T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.TimestampType, T.TimestampNTZType)
"""Types of ordering values that all releases compare in deletes as in other records."""


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """Snapshot of a table, before files are selected.

    Attributes:
        client: The table.
        opts: Options of the statement, with the storage settings of the session.
        table: The snapshot.
        spec: Specification of its keys.
        schema: The table's own columns with Spark types, all nullable.
        nullable: Columns that may be null.
        recomputes_keys: Record keys are computed from their columns, which is faster than to read them, too.
    """

    client: TableMetaClient
    opts: Options
    table: TableSnapshot
    spec: KeySpec
    schema: StructType
    nullable: frozenset[str]
    recomputes_keys: bool

    @property
    def keyed(self) -> KeyedSnapshot:
        """The snapshot and its keys, as a write needs them."""
        return KeyedSnapshot(self.table, self.spec)

    @property
    def merging(self) -> MergeSettings:
        """Merge settings."""
        return self.client.config.merging_of_write(self.opts)

    @classmethod
    def pin(cls, spark: SparkSession, path: str, statement_opts: Options) -> TargetSnapshot:
        """Pin the table at its newest snapshot.

        Raises:
            ConfigError: The table has no columns.
            SetupError: The session has been stopped.
        """
        check_not_stopped(spark)
        opts = Options.parse({**session_settings(spark, path), **statement_opts})
        client = TableMetaClient.open(path, opts)
        opts = client.config.validate_against(opts)
        table = TableSnapshot.load(client)
        table_schema = resolve_table_schema(table)
        if table_schema is None or not remove_meta_columns(table_schema.schema).names:
            raise ConfigError(
                f"the table at {path!r} has no columns yet, so it has no rows to change; write rows first"
            )
        schema = spark_schema(remove_meta_columns(as_nullable(table_schema.schema)))
        nullable = frozenset(field.name for field in table_schema.schema if field.nullable)
        spec = key_spec(table, opts)
        recomputes_keys = not table_schema.has_history and has_recomputable_keys(schema, spec)
        return cls(client, opts, table, spec, schema, nullable, recomputes_keys)

    def whole_table(self) -> ReadSet:
        """Return the read set of a statement that reads all rows."""
        return partition_reads(self.table, lambda _: True)

    def partition_reads(self, partitions: Sequence[str]) -> ReadSet:
        """Return the read set of a statement that reads all rows of these partitions."""
        return partition_reads(self.table, frozenset(partitions).__contains__)

    @property
    def ordering_of_deletes(self) -> frozenset[str]:
        """Ordering columns whose values the deletes of a statement record in log files; empty if they record none.

        Without them, a later version with a smaller value would win against the delete but lose against the base file,
        so that the deleted row would be back. Apache Hudi 1.0 merges deletes with values of other types wrongly.
        """
        merging = self.merging
        if (
            self.client.config.table_type is not TableType.MERGE_ON_READ
            or merging.mode is not MergeMode.EVENT_TIME_ORDERING
            or merging.combines_versions
        ):
            return frozenset()
        types = {field.name: field.dataType for field in self.schema.fields}
        are_comparable = all(isinstance(types.get(name), _COMPARABLE_IN_DELETES) for name in merging.ordering_fields)
        return frozenset(merging.ordering_fields) if are_comparable else frozenset()

    def ordering_values(self, spark: SparkSession, partitions: Sequence[str]) -> DataFrame:
        """Return the partition paths, columns of record keys, and `ordering_of_deletes` of all records of some
        partitions."""
        columns = dict.fromkeys([PARTITION_PATH, *self.spec.record_fields, *sorted(self.ordering_of_deletes)])
        return self._partitions(spark, partitions, list(columns), self._opts_of_stored_values)

    def partition_keys(self, spark: SparkSession, partitions: Sequence[str]) -> DataFrame:
        """Return the record keys and partition paths of all records of some partitions."""
        meta = self.client.config.populate_meta_fields
        columns = [RECORD_KEY, PARTITION_PATH] if meta else self.schema.names
        rows = self._partitions(spark, partitions, columns, self.opts)
        return (rows if meta else with_keys(rows, self.spec, "")).select(RECORD_KEY, PARTITION_PATH)

    def partition_rows(self, spark: SparkSession, partitions: Sequence[str] | None = None) -> DataFrame:
        """Return all rows of some partitions: the table's own columns, `STORED_KEY` and `STORED_PATH`.

        Args:
            spark: The session.
            partitions: Partition paths; None: all.
        """
        rows = self._partitions(spark, partitions, None, self._opts_of_stored_values)
        return self._stored(rows, self.schema, located=False)

    @property
    def _opts_of_stored_values(self) -> Options:
        """Options by which partition columns are read from files; in paths they are texts."""
        return self.opts.merged({options.READ_PARTITION_VALUES.key: PartitionValues.FILE.value})

    def _partitions(
        self, spark: SparkSession, partitions: Sequence[str] | None, columns: Sequence[str] | None, opts: Options
    ) -> DataFrame:
        plan = plan_scan(self.table, columns=columns, opts=opts)
        if partitions is not None:
            plan = plan.select_partitions(partitions)
        return dataframe(SparkScan(spark, self.table, plan, opts))

    def read(self, spark: SparkSession, where: str | None = None) -> TargetTable:
        """Return the table with its rows.

        Args:
            spark: The session.
            where: SQL condition on the table's own columns. Only rows that meet it are read, from file groups that may
                contain such rows.
        """
        client, opts, table = self.client, self.opts, self.table
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
        stored = self._stored(read, schema, located=located)
        reads = ReadSet.of_snapshot(table.active.timeline, _groups(planned), replan)
        keys = (self.spec, schema, self.nullable, self.recomputes_keys)
        return TargetTable(client, opts, table, *keys, stored, reads, locations, planned)

    def _stored(self, read: DataFrame, schema: StructType, *, located: bool) -> DataFrame:
        """Replace the meta columns of rows by their keys and locations."""
        stored = {RECORD_KEY: STORED_KEY, PARTITION_PATH: STORED_PATH}
        if not self.client.config.populate_meta_fields:
            return with_keys(select_names(read, schema.names), self.spec, "").withColumnsRenamed(stored)
        if located:
            # The name of a base file starts with the file group; records of log files have only that.
            read = read.withColumn(FILE_ID, F.substring_index(FILE_NAME, "_", 1))
            stored |= {FILE_ID: FILE_ID} | ({SCANNED_ROW: ROW_POSITION} if SCANNED_ROW in read.columns else {})
        if self.recomputes_keys:
            read = read.withColumn(RECORD_KEY, stored_record_key(schema, self.spec))
        return read.selectExpr(*map(quoted_name, schema.names), *(f"{name} AS {new}" for name, new in stored.items()))

    @property
    def placing_columns(self) -> frozenset[str]:
        """Top-level columns from which record keys and partition paths are made."""
        return self.key_columns | self.partition_columns

    @property
    def partition_columns(self) -> frozenset[str]:
        """Top-level columns from which partition paths are made."""
        return _tops((field.name for field in self.spec.partition_fields), self.schema)

    @property
    def key_columns(self) -> frozenset[str]:
        """Top-level columns from which record keys are made."""
        return _tops(self.spec.record_fields, self.schema)


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
        needed = _tops((name for names in merging.deciding_columns.values() for name in names), self.schema)
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


def _positions(client: TableMetaClient, opts: Options) -> RowPositions:
    """Return the positions of rows that a write to the table uses."""
    config = client.config
    if config.table_type is TableType.COPY_ON_WRITE:
        return RowPositions.ALL
    return RowPositions.KNOWN if records_positions(config, opts) else RowPositions.NONE


def _groups(plan: ScanPlan) -> pa.Table:
    return pa.Table.from_arrays([plan.tasks["partition"], plan.tasks["file_id"]], schema=GROUP_SCHEMA)


def _tops(fields: Iterable[str], schema: StructType) -> frozenset[str]:
    return frozenset(top_column(name, schema.names) for name in fields)
