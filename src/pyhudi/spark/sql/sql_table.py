"""``SqlTable``: the Hudi table of a SQL statement, by its location and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.errors import NotAHudiTableError, QueryError, warn
from pyhudi.read.inspection.table_inspection import Inspect
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.spark.execution.local_relations import empty_frame
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.operations.delete_partition import unknown_partitions_message
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.write.write_operations import match_partitions, unmatched_partitions


def partitions_last(names: Sequence[str], config: TableConfig) -> list[str]:
    """Return names of columns with partition columns last, in the order of the table's partitioning. SQL lists columns,
    and matches them by position, in this order."""
    last = dict.fromkeys(field.name for field in config.partition_fields if field.name in names)
    return [*(name for name in names if name not in last), *last]


def _columns(client: TableMetaClient) -> pa.Schema:
    resolved = resolve_table_schema(TableSnapshot.load(client))
    return resolved.schema if resolved is not None else pa.schema([])


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table of a SQL statement.

    Attributes:
        location: Its path or URI.
        opts: Options of reads and writes.
        client: The table as it was opened; its properties are those at that time.
    """

    location: str
    opts: Options
    client: TableMetaClient

    @classmethod
    def at(cls, spark: SparkSession, location: str, table_options: Mapping[str, object] | None = None) -> SqlTable:
        """Open a table.

        Args:
            spark: The session, whose settings for the object store apply.
            location: Path or URI of the table.
            table_options: Options, which override the settings of the session.

        Raises:
            NotAHudiTableError: There is none.
        """
        opts = Options.parse({**session_settings(spark, location), **(table_options or {})})
        return cls(location, opts, TableMetaClient.open(location, opts))

    @classmethod
    def from_catalog(cls, spark: SparkSession, table: CatalogTable) -> SqlTable:
        """Open a table of the catalog with the options of its properties.

        Raises:
            NotAHudiTableError: There is none.
        """
        return cls.at(spark, table.location, table.options)

    @classmethod
    def exists(cls, spark: SparkSession, location: str, table_options: Mapping[str, object] | None = None) -> bool:
        """Return True if there is a table. Arguments as of `at`."""
        try:
            cls.at(spark, location, table_options)
        except NotAHudiTableError:
            return False
        return True

    @property
    def config(self) -> TableConfig:
        """Content of ``hoodie.properties``."""
        return self.client.config

    def load_schema(self) -> pa.Schema:
        """Read the table's columns, meta columns first; empty if it has no commits."""
        return _columns(self.client)

    def load_sql_schema(self) -> StructType:
        """Read the table's columns in the order in which SQL lists them: meta columns first, partition columns last
        (`partitions_last`)."""
        schema = spark_schema(self.load_schema())
        return StructType([schema[name] for name in partitions_last(schema.names, self.config)])

    @property
    def inspect(self) -> Inspect:
        """Files, slices and partitions."""
        return Inspect(lambda: TableSnapshot.load(self.client))

    def delete_partitions(self, spark: SparkSession, paths: list[str]) -> None:
        """Drop partitions by their paths, in one commit."""
        # With the option, checks of the job require no rows.
        self._delete_partitions(spark, ",".join(paths), paths)

    def delete_matching_partitions(self, spark: SparkSession, patterns: str) -> None:
        """Drop partitions by comma-separated patterns, in which `*` matches any text, in one commit. If no partition
        matches, a warning says so, and there is no commit.

        Raises:
            QueryError: The list is empty.
        """
        existing = self.inspect.partitions()["partition"].to_pylist()
        matching = match_partitions(patterns, existing)
        missing = unmatched_partitions(patterns, existing)
        if not matching and not missing:
            raise QueryError(f"{patterns!r} names no partition of the table at {self.location!r}; give a path")
        if set(existing).isdisjoint(matching):
            warn(unknown_partitions_message(self.location, missing, existing))
            return
        self._delete_partitions(spark, patterns, ())

    def _delete_partitions(self, spark: SparkSession, patterns: str, paths: Sequence[str]) -> None:
        write_options = {
            **self.opts,
            options.PARTITIONS_TO_DELETE.key: patterns,
            options.OPERATION.key: "delete_partition",
        }
        nothing = empty_frame(spark, spark_schema(self.load_schema()))
        write(nothing, self.location, write_options, "append", partitions=paths)

    def delete_all(self, spark: SparkSession) -> None:
        """Delete all rows by replacing all file groups, in one commit."""
        write_options = {**self.opts, options.OPERATION.key: "insert_overwrite_table"}
        write(empty_frame(spark, spark_schema(self.load_schema())), self.location, write_options, "append")
