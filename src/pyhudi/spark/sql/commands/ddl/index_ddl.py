"""CREATE, DROP and REFRESH INDEX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from pyhudi.errors import ConfigError
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.metadata_layout import COLUMN_STATS, PARTITION_STATS
from pyhudi.schema.name_resolution import resolve_path
from pyhudi.services.indexing.index_builder import IndexEngine, build_index
from pyhudi.services.indexing.index_builder import drop_index as drop
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.index_engines import spark_index_builder
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import CreateIndex, DropIndex, RefreshIndex

_RECORD_INDEX, _SECONDARY_INDEX = "record_index", "secondary_index"


def create_index(spark: SparkSession, table: CatalogTable, statement: CreateIndex) -> None:
    """Run CREATE INDEX: build the index, which writes maintain afterwards."""
    handle = SqlTable.at(spark, table.location, write_options(spark, table))
    is_record_index = _RECORD_INDEX in (statement.index, statement.using)
    indexed = _indexed(spark, handle, statement)
    columns = () if is_record_index else indexed
    if is_record_index and indexed and indexed != handle.config.record_keys:
        raise ConfigError(
            f"the record index is of the record key ({', '.join(handle.config.record_keys)}), not of "
            f"({', '.join(statement.columns)})"
        )
    index_options = {key: value for key, value in statement.options.items() if not key.startswith("hoodie.")}
    name = _RECORD_INDEX if is_record_index else statement.index
    using = None if is_record_index or statement.using == _SECONDARY_INDEX else statement.using
    request = replace(
        IndexRequest.from_arguments(name, columns, using, index_options), if_not_exists=statement.if_not_exists
    )
    client = handle.client
    opts = client.config.validate_against(handle.opts.merged(_hudi_options(statement.options)))
    engine = IndexEngine(spark_index_builder(spark) if request.needs_spark else None, SparkFileStatsReader(spark))
    build_index(client, opts, request, engine, dry_run=False)


def _indexed(spark: SparkSession, handle: SqlTable, statement: CreateIndex) -> tuple[str, ...]:
    """Return the columns of an index as the table spells them, unknown columns as spelled in the statement."""
    sensitive, schema = is_case_sensitive(spark), handle.load_schema()
    paths = (resolve_path(name, schema, case_sensitive=sensitive) or [name] for name in statement.columns)
    return tuple(".".join(path) for path in paths)


def _hudi_options(statement_options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in statement_options.items() if key.startswith("hoodie.")}


def drop_index(spark: SparkSession, table: CatalogTable, statement: DropIndex) -> None:
    """Run DROP INDEX."""
    handle = SqlTable.at(spark, table.location, write_options(spark, table))
    client = handle.client
    opts = client.config.validate_against(handle.opts)
    # Partition statistics are dropped with the column statistics, which scripts drop first.
    is_dropped_already = statement.index == PARTITION_STATS and not {COLUMN_STATS, PARTITION_STATS} & {
        *client.config.metadata_partitions
    }
    drop(client, opts, statement.index, if_exists=statement.if_exists or is_dropped_already, dry_run=False)


def refresh_index(spark: SparkSession, table: CatalogTable, statement: RefreshIndex) -> None:
    """Run REFRESH INDEX. Writes maintain the index, so this only checks that it exists.

    Raises:
        ConfigError: There is no such index.
    """
    client = SqlTable.from_catalog(spark, table).client
    indexes = {*client.config.metadata_partitions, *load_definitions(client.storage, client.config)}
    names = {name.removeprefix("secondary_index_").removeprefix("expr_index_") for name in indexes}
    if statement.index not in names | indexes:
        raise ConfigError(
            f"{table.sql} has no index {statement.index!r}; it has {', '.join(sorted(names)) or 'no indexes'}"
        )
