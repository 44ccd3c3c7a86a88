"""Columns with statistics in the metadata table, selected as in Apache Hudi."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import OptionWithoutEffectWarning, warn
from pyhudi.format.base_file.column_bounds import flat_schema
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.metadata_layout import COLUMN_STATS
from pyhudi.metadata.records.stats_values import is_supported
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.meta_columns import add_meta_columns, is_meta_column
from pyhudi.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.latest_schema import newest_columns

_ALWAYS = (COMMIT_TIME, RECORD_KEY, PARTITION_PATH)


def indexed_columns(config: TableConfig, schema: pa.Schema, opts: Options) -> pa.Schema:
    """Return the columns (dotted names are leaves of structs) with statistics.

    ``schema`` has the table's own columns as stored in its files. Three meta columns are always indexed if files have
    them, followed by the columns in `hoodie.metadata.index.column.stats.column.list`, or the first ones with comparable
    values.
    """
    data_columns = pa.schema([field for field in schema if not is_meta_column(field.name)])
    listed = opts.get_typed(options.METADATA_COLUMN_STATS_COLUMNS)
    max_columns = opts.get_typed(options.METADATA_COLUMN_STATS_MAX_COLUMNS)
    selected = flat_schema(data_columns, listed or data_columns.names)
    supported = [field for field in selected if is_supported(field.type, config.version)]
    meta: list[pa.Field] = []
    if config.populate_meta_fields:
        names = _ALWAYS if config.version >= 8 else tuple(add_meta_columns(pa.schema([])).names)
        meta = [pa.field(name, pa.string()) for name in names]
    limited = config.version >= 8 and not listed
    return pa.schema([*meta, *(supported[:max_columns] if limited else supported)])


def check_listed_columns(schema: pa.Schema, opts: Options) -> None:
    """Issue OptionWithoutEffectWarning for columns in `hoodie.metadata.index.column.stats.column.list` that a table
    with the columns ``schema`` lacks; as in Apache Hudi, they are left out."""
    option = options.METADATA_COLUMN_STATS_COLUMNS
    if not opts.get_typed(options.METADATA_ENABLE) or not opts.get_typed(options.METADATA_COLUMN_STATS_ENABLE):
        return
    for name in opts.get_typed(option):
        if field_type(schema, name) is None and not is_meta_column(name):
            near = difflib.get_close_matches(name, schema.names, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"the columns are {', '.join(schema.names)}"
            warn(f"{option.key}: there is no column {name!r}; {cure}", OptionWithoutEffectWarning)


def with_requested_columns(
    columns: pa.Schema, names: Sequence[str], stored: pa.Schema, config: TableConfig
) -> pa.Schema:
    """Return the columns and those with the given names (dotted: leaves of structs) that files have and that support
    statistics."""
    more = flat_schema(stored, [name for name in names if name not in columns.names])
    return pa.schema([*columns, *(field for field in more if is_supported(field.type, config.version))])


def columns_to_index(table: TableSnapshot, opts: Options) -> pa.Schema:
    """Return the columns with statistics, independently of a write; none before the first write."""
    newest = newest_columns(table.active)
    return pa.schema([]) if newest is None else columns_after_write(table, opts, newest[1])


def columns_of_new_table(config: TableConfig, opts: Options, metadata: CommitMetadata) -> pa.Schema:
    """Return the columns with statistics after the first write; none if it does not record the columns of the table."""
    schema = _stored_columns(config, metadata)
    return pa.schema([]) if schema is None else indexed_columns(config, schema, opts)


def _stored_columns(config: TableConfig, metadata: CommitMetadata) -> pa.Schema | None:
    """Return the columns in files of a write; None if it does not record them."""
    text = metadata.schema_json
    if text is None:
        return None
    dropped = {f.name for f in config.partition_fields} if config.drop_partition_columns else set()
    return pa.schema([f for f in from_avro(text) if f.name not in dropped])


def columns_after_write(table: TableSnapshot, opts: Options, metadata: CommitMetadata) -> pa.Schema:
    """Return the columns with statistics after a write, taking existing statistics into account.

    Columns keep their statistics regardless of the options of a single write, because partition statistics that omit a
    write would hide its rows. Columns that another writer has omitted and that the options do not name remain omitted:
    releases differ in supported types, and must not alternate in rebuilding statistics. New columns of the table are
    included.
    """
    config, data = table.config, table.active
    columns, stored = columns_of_new_table(config, opts, metadata), _stored_columns(config, metadata)
    if stored is not None and (version := metadata.extra.get(LATEST_SCHEMA)):
        stored = _never_renamed_columns(stored, version, table)
        columns = pa.schema([field for field in columns if field.name.split(".")[0] in stored.names])
    used = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    if config.version < 8 or COLUMN_STATS not in used or stored is None:
        return columns
    indexed = load_definitions(table.storage, config).get(COLUMN_STATS, {}).get("sourceFields") or []
    extra = [name for name in columns.names if name not in indexed]
    last = data.timeline.completed().writes().last
    if extra and last is not None and not opts.is_set(options.METADATA_COLUMN_STATS_COLUMNS):
        text = data.commit_metadata(last).schema_json
        before = set() if text is None else set(from_avro(text).names)
        columns = pa.schema([field for field in columns if field.name in indexed or field.name not in before])
    return with_requested_columns(columns, indexed, stored, config)


def _never_renamed_columns(columns: pa.Schema, version: str, table: TableSnapshot) -> pa.Schema:
    """Return the columns that were never renamed, because partition statistics of renamed ones would omit older files.
    ``version`` is the schema recorded by a write."""
    newest = InternalSchema.from_json(json.loads(version))
    history = SchemaHistory.load(table.active)
    if history is None:  # The write starts it: the files before it have the columns that were recorded until then.
        recorded = newest_columns(table.active)
        text = table.config.create_schema if recorded is None else recorded[1].schema_json
        history = SchemaHistory.from_schema(
            InternalSchema.from_arrow(add_meta_columns(from_avro(text))) if text else newest
        )
    unchanged = history.with_version(newest).unchanged()
    return pa.schema([field for field in columns if field.name in unchanged])
