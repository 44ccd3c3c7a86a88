"""Columns with statistics in the metadata table, selected as in Apache Hudi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.format.base_file.column_bounds import flat_schema
from pyhudi.metadata.records.stats_values import is_supported
from pyhudi.schema.meta_columns import add_meta_columns, is_meta_column
from pyhudi.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY

if TYPE_CHECKING:
    from pyhudi.table.config.table_config import TableConfig

_ALWAYS = (COMMIT_TIME, RECORD_KEY, PARTITION_PATH)


def indexed_columns(schema: pa.Schema, config: TableConfig, opts: Options) -> pa.Schema:
    """Return the columns (dotted names are leaves of structs) with statistics.

    ``schema`` has the table's own columns as stored in its files. Three meta columns are always indexed if files have
    them, followed by the columns in `hoodie.metadata.index.column.stats.column.list`, or the first ones with comparable
    values.
    """
    data_columns = pa.schema([field for field in schema if not is_meta_column(field.name)])
    listed = opts.get_typed(options.METADATA_COLUMN_STATS_COLUMNS)
    most = opts.get_typed(options.METADATA_COLUMN_STATS_MAX_COLUMNS)
    selected = flat_schema(data_columns, listed or data_columns.names)
    supported = [field for field in selected if is_supported(field.type, config.version)]
    meta: list[pa.Field] = []
    if config.populate_meta_fields:
        names = _ALWAYS if config.version >= 8 else tuple(add_meta_columns(pa.schema([])).names)
        meta = [pa.field(name, pa.string()) for name in names]
    limited = config.version >= 8 and not listed
    return pa.schema([*meta, *(supported[:most] if limited else supported)])


def with_requested_columns(
    columns: pa.Schema, names: Sequence[str], stored: pa.Schema, config: TableConfig
) -> pa.Schema:
    """Return the columns and those with the given names (dotted: leaves of structs) that files have and that support
    statistics."""
    more = flat_schema(stored, [name for name in names if name not in columns.names])
    return pa.schema([*columns, *(field for field in more if is_supported(field.type, config.version))])
