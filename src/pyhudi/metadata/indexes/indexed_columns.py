"""Columns that the metadata table keeps statistics of, chosen as in Apache Hudi."""

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
    """The columns (dotted names are leaves of structs) of which statistics are kept.

    ``schema`` has the table's own columns as they stand in its files. Always indexed are three meta columns, where
    files have them; then the columns that `hoodie.metadata.index.column.stats.column.list` names, or the first ones
    with values that can be compared.
    """
    own = pa.schema([field for field in schema if not is_meta_column(field.name)])
    listed = opts.get_typed(options.METADATA_COLUMN_STATS_COLUMNS)
    most = opts.get_typed(options.METADATA_COLUMN_STATS_MAX_COLUMNS)
    wanted = flat_schema(own, listed or own.names)
    found = [field for field in wanted if is_supported(field.type, config.version)]
    meta: list[pa.Field] = []
    if config.populate_meta_fields:
        names = _ALWAYS if config.version >= 8 else tuple(add_meta_columns(pa.schema([])).names)
        meta = [pa.field(name, pa.string()) for name in names]
    limited = config.version >= 8 and not listed
    return pa.schema([*meta, *(found[:most] if limited else found)])


def with_columns(columns: pa.Schema, names: Sequence[str], stored: pa.Schema, config: TableConfig) -> pa.Schema:
    """The columns and those of some names (dotted: leaves of structs) that files have and can have statistics."""
    more = flat_schema(stored, [name for name in names if name not in columns.names])
    return pa.schema([*columns, *(field for field in more if is_supported(field.type, config.version))])
