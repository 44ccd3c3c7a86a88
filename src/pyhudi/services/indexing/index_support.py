"""Checks whether a table supports an index that is requested."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config.enums import TableType
from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.metadata.indexes import expression_index_definition
from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex
from pyhudi.metadata.indexes.record_index_definition import has_partitioned_record_index
from pyhudi.metadata.indexes.secondary_index_definition import SECONDARY, can_be_indexed
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, PARTITION_STATS, RECORD_INDEX
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.schema_history import SchemaHistory
from pyhudi.table.table_snapshot import TableSnapshot


def check_supported(request: IndexRequest, table: TableSnapshot, schema: pa.Schema) -> None:
    """Check that a table with these columns supports a requested index.

    Raises:
        UnsupportedTableError: It does not.
        ConfigError: A column is unknown, or a prerequisite of the index is missing.
    """
    storage, config = table.storage, table.config
    if request.expression is not None:
        _check_expression(request.expression, config, schema)
        _check_same_column(request.expression, table)
        return
    if request.kind == PARTITION_STATS and not config.is_partitioned:
        raise UnsupportedTableError("partition_stats require a partitioned table")
    if request.kind in (PARTITION_STATS, SECONDARY) and config.version < 8:
        raise UnsupportedTableError(
            f"tables of version {config.version} do not support {request.kind}; upgrade the table to version 8 or later"
        )
    if request.kind == SECONDARY:
        _check_secondary(request, storage, config, schema)


def check_secondary_column(request: IndexRequest, config: TableConfig, schema: pa.Schema) -> None:
    """Check that a table with these columns can have a requested secondary index.

    Raises:
        ConfigError: There is no such column.
        UnsupportedTableError: It cannot be indexed.
    """
    (column,) = request.columns
    if config.drop_partition_columns and column in {field.name for field in config.partition_fields}:
        raise UnsupportedTableError(f"column {column!r} is not stored in files, only in partition paths")
    if column not in schema.names:
        raise ConfigError(f"the column {column!r} to index does not exist; the table has {', '.join(schema.names)}")
    data_type = schema.field(column).type
    if not can_be_indexed(data_type):
        raise UnsupportedTableError(
            f"column {column!r} has type {data_type}; secondary indexes support texts, integers, dates and timestamps"
        )


def _check_secondary(request: IndexRequest, storage: Storage, config: TableConfig, schema: pa.Schema) -> None:
    check_secondary_column(request, config, schema)
    if RECORD_INDEX not in config.metadata_partitions:
        raise ConfigError(
            "a secondary index returns record keys, and requires the record index to find them: build that first, "
            f"by build_index('record_index') or CREATE INDEX record_index ON … ({', '.join(config.record_keys)})"
        )
    if has_partitioned_record_index(storage, config):
        raise UnsupportedTableError(
            "a secondary index requires a global record index, but the one of this table is partitioned"
        )


def _check_expression(index: ExpressionIndex, config: TableConfig, schema: pa.Schema) -> None:
    column = index.expression.column
    if config.version < 8:
        raise UnsupportedTableError(
            f"tables of version {config.version} do not support expression indexes; upgrade the table to version "
            "8 or later"
        )
    if column not in schema.names:
        raise ConfigError(f"the column {column!r} to index does not exist; the table has {', '.join(schema.names)}")
    if not expression_index_definition.can_be_indexed(index, schema.field(column).type, config.version):
        raise UnsupportedTableError(
            f"column {column!r} has type {schema.field(column).type}: {index.expression} does not support {index.kind}"
        )
    if not expression_index_definition.can_be_kept(index, config):
        raise UnsupportedTableError(
            f"{index.expression} cannot be computed from files: column {column!r} is not stored in them, or a "
            "merger computes new values"
        )
    if index.kind == BLOOM_FILTERS and config.table_type is TableType.MERGE_ON_READ:
        raise UnsupportedTableError(
            "Apache Hudi cannot write to merge-on-read tables with bloom filters of an expression, so pyhudi does "
            "not build them"
        )


def _check_same_column(index: ExpressionIndex, table: TableSnapshot) -> None:
    """Refuse a column that files may have under another name, or whose name another column may have there: values are
    computed from files by name."""
    history = SchemaHistory.load(table.active)
    column = index.expression.column
    if history is not None and column not in history.unchanged():
        raise UnsupportedTableError(
            f"{index.expression} cannot be computed from files: column {column!r} was renamed, or has the name of an "
            "earlier column, so older files have other values under this name. Copy the rows into a new table to index "
            "the column"
        )
