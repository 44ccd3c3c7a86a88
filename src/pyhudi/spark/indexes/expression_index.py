"""Expression indexes on Spark: built of what a table holds, and kept up to date by its writes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import UnsupportedTableError
from pyhudi.format.base_file.column_bounds import leaf_type
from pyhudi.metadata.file_groups.delta_files import GroupFiles, Stat
from pyhudi.metadata.file_groups.log_file_groups import write_logs
from pyhudi.metadata.indexes.expression_index_definition import (
    ExpressionIndex,
    can_be_indexed,
    can_be_kept,
    expression_indexes,
)
from pyhudi.metadata.indexes.expression_index_records import expression_records
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, metadata_timeline
from pyhudi.metadata.records.record_changes import Records
from pyhudi.metadata.writer.commit_records import files_of_commit
from pyhudi.metadata.writer.initialize_partitions import build_partition, group_count, logs_stand_alone, table_contents
from pyhudi.read.schema.table_columns import schema_after
from pyhudi.spark.indexes.expression_values import check_expression, summaries
from pyhudi.spark.read.pruning.overridden_functions import overridden_functions
from pyhudi.spark.spark_errors import refused_values
from pyhudi.table.pinned_table import PinnedTable

if TYPE_CHECKING:
    from pyhudi.services.indexing.index_builder import LockedTable
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.commit_metadata import CommitMetadata

_log = logging.getLogger(__name__)


def build_expression_index(spark: SparkSession, table: LockedTable, index: ExpressionIndex) -> None:
    """Build an expression index of what the table holds; it is not declared here. Runs a Spark job.

    Raises:
        ConfigError: Spark has no such function of a column of that type.
        UnsupportedTableError: some of the values are null, and are to be in bloom filters.
    """
    storage, config = table.storage, table.config
    check_expression(spark, index.expression, table.schema)
    records = first_records(spark, table, index, table_contents(storage, config, table.data).live, table.schema)
    count = group_count(index.partition, table.opts)
    build_partition(table.metadata_context(), config, index.partition, count, lambda groups: groups.write(records))


def first_records(
    spark: SparkSession, table: LockedTable, index: ExpressionIndex, live: pa.Table, columns: pa.Schema
) -> Records:
    """The records that an expression index has of all files of a table (``live``), which has these columns. Runs a
    Spark job.

    Raises:
        UnsupportedTableError: some of the values are null, and are to be in bloom filters; or the session refuses to
            compute them.
    """
    newest = pc.max(live["instant"]).as_py() or ""
    with refused_values(str(index.expression)):
        (records,) = _records(
            spark, table.storage, table.config, live, [index], columns, newest, first=True, opts=table.opts
        )
    if records is None:
        raise UnsupportedTableError(
            f"{index.expression} is null in some rows: Apache Hudi cannot keep bloom filters of such values; build "
            "column_stats of them"
        )
    return records


def expression_delta(
    spark: SparkSession,
    client: TableMetaClient,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    only: Collection[str] | None = None,
) -> IndexDelta | None:
    """Write what a write at ``instant`` has done to the expression indexes; None when the table has none that are kept
    here. Runs a Spark job.

    ``config`` is the table's as it is now, ``metadata`` what the commit is going to say. ``only``: the partitions of
    the indexes that are asked for. Indexes whose values cannot be computed are left out, so that they are taken out of
    use.
    """
    storage = client.storage
    asked = [one for one in expression_indexes(storage, config, kept=True) if only is None or one.partition in only]
    columns = schema_after(PinnedTable.of(client), metadata) if asked else pa.schema([])
    indexes = [
        index
        for index in asked
        if can_be_kept(index, config)
        and can_be_indexed(index, leaf_type(columns, index.expression.column), config.version)
        and not _is_overridden(spark, index, storage)
    ]
    if not indexes:
        return None
    names = [index.partition for index in indexes]
    try:
        found = _records(spark, storage, config, files_of_commit(metadata), indexes, columns, instant)
        kept = {name: records for name, records in zip(names, found, strict=True) if records is not None}
        stats = _written(storage, config, kept, instant)
    except Exception as failure:  # of Spark's functions, too, which may refuse a value
        _log.warning("%s of %s cannot be kept: %s", ", ".join(names), storage.root, failure)
        return None
    return IndexDelta(frozenset(kept), stats)


def _is_overridden(spark: SparkSession, index: ExpressionIndex, storage: Storage) -> bool:
    """True if the session would compute something else than the index is of."""
    hidden = overridden_functions(spark, [index.expression.function])
    if hidden:
        _log.warning(
            "%s of %s cannot be kept: the session has a function of its own by the name of %s",
            index.partition,
            storage.root,
            ", ".join(hidden),
        )
    return bool(hidden)


def _written(storage: Storage, config: TableConfig, records: Mapping[str, Records], instant: str) -> list[Stat]:
    """Write the records of each partition of the metadata table; returns the write stats of the files."""
    own = metadata_timeline(storage, config.version).timeline
    stats = []
    for partition, part in records.items():
        stats += write_logs(GroupFiles(storage, partition, instant, config.version), own, part)
    return stats


def _records(
    spark: SparkSession,
    storage: Storage,
    config: TableConfig,
    files: pa.Table,
    indexes: Sequence[ExpressionIndex],
    columns: pa.Schema,
    instant: str,
    *,
    first: bool = False,
    opts: Options | None = None,
) -> list[Records | None]:
    """The records of indexes for files, index by index; None where there can be no bloom filters of its values."""
    if not files.num_rows:
        return [Records() for _ in indexes]
    invalid_text = (opts or Options.parse({})).get_typed(options.READ_INVALID_TEXT)
    found = summaries(spark, storage, files, indexes, columns, invalid_text)
    mine, logs_count = files.take(found["number"]), logs_stand_alone(config)

    def records(index: ExpressionIndex) -> Records | None:
        kept = found[index.partition].combine_chunks()
        if index.kind == BLOOM_FILTERS and kept.field("text").null_count:
            return None
        return expression_records(index, mine, kept, config.version, instant, logs_count=logs_count, first=first)

    return [records(index) for index in indexes]
