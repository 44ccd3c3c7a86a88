"""Snapshot at which the target table of an UPDATE, DELETE or MERGE is pinned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import MergeMode, PartitionValues, TableType
from pyhudi.errors import ConfigError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.meta_fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.schema.table_types import as_nullable
from pyhudi.spark.column_names import quoted_name, select_names
from pyhudi.spark.helper_columns import SCANNED_ROW, STORED_KEY, STORED_PATH
from pyhudi.spark.keys.key_generator import has_recomputable_keys, stored_record_key, with_keys
from pyhudi.spark.read.dataframe_reader import dataframe
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.session import check_not_stopped
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.write.write_preparation import KeyedSnapshot, key_spec
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.transaction.conflicts.serializable_reads import ReadSet, partition_reads
from pyhudi.write.location_columns import FILE_ID, ROW_POSITION

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
        return self.identified_rows(rows, self.schema, located=False)

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

    def identified_rows(self, read: DataFrame, schema: StructType, *, located: bool) -> DataFrame:
        """Return rows with their keys and partition paths, `STORED_KEY` and `STORED_PATH`, instead of meta columns.

        Args:
            read: Rows with meta columns, if the table has them.
            schema: Their columns of the table.
            located: Add `FILE_ID`, and `ROW_POSITION` if the rows have positions.
        """
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
        return top_columns((field.name for field in self.spec.partition_fields), self.schema)

    @property
    def key_columns(self) -> frozenset[str]:
        """Top-level columns from which record keys are made."""
        return top_columns(self.spec.record_fields, self.schema)


def top_columns(fields: Iterable[str], schema: StructType) -> frozenset[str]:
    return frozenset(top_column(name, schema.names) for name in fields)
