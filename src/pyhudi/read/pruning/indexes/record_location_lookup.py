"""Record keys that a filter restricts rows to, and their locations by the record index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import ConfigError, QueryError, RecordKeyError, UnsupportedTableError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.record_key_formatter import record_keys
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD
from pyhudi.metadata.records.record_index_file_groups import RecordIndexFileGroups
from pyhudi.metadata.records.record_locations import decode_locations
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Term, literal
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.table_config import TableConfig

MAX_KEYS = 10_000
"""Maximum number of keys that are looked up."""
_MAX_INDEXES = 256

KEY_LOCATION_SCHEMA = pa.schema([("key", pa.string()), ("partition", pa.string()), ("file_id", pa.string())])
"""Location of a record by its key."""


def equality_keys(
    row_filter: RowFilter, config: TableConfig, schema: pa.Schema, opts: Options
) -> pa.StringArray | None:
    """Return the record keys that a matching row must have; None if the filter does not restrict them."""
    keys: list[str] = []
    for conjunction in row_filter.anyof:
        conjunction_keys = _keys_of_conjunction(conjunction, config, schema, opts)
        if conjunction_keys is None:
            return None
        keys += conjunction_keys
    return pa.array(sorted(set(keys)), pa.string()) if 0 < len(keys) <= MAX_KEYS else None


def _keys_of_conjunction(
    conjunction: tuple[Term, ...], config: TableConfig, schema: pa.Schema, opts: Options
) -> list[str] | None:
    values_by_field = _equality_values(conjunction)
    if RECORD_KEY in values_by_field and config.populate_meta_fields:
        texts = values_by_field[RECORD_KEY]
        return [text for text in texts if isinstance(text, str)] if all(isinstance(t, str) for t in texts) else None
    fields = config.record_keys
    if not fields or any(name not in values_by_field for name in fields):
        return None
    if len(fields) > 1 and any(len(values_by_field[name]) != 1 for name in fields):
        return None
    try:
        spec = KeySpec.from_config(config, opts)
        columns = []
        for name in spec.record_fields:
            column = _key_column(schema.field(name).type, values_by_field[name], name)
            if column is None:
                return None
            columns.append(column)
        batch = pa.RecordBatch.from_arrays(columns, names=list(spec.record_fields))
        return [key for form in _key_specs(spec) for key in record_keys(batch, form).to_pylist()]
    except (ConfigError, QueryError, RecordKeyError, UnsupportedTableError, KeyError, pa.ArrowInvalid):
        return None


def _equality_values(conjunction: tuple[Term, ...]) -> dict[str, tuple[object, ...]]:
    """Return the values, by column, one of which a matching row must have."""
    values: dict[str, tuple[object, ...]] = {}
    for term in conjunction:
        if term.op in ("=", "==") and term.value is not None:
            values.setdefault(term.column, (term.value,))
        elif term.op == "in":
            values.setdefault(term.column, tuple(term.value))
    return values


def _key_column(data_type: pa.DataType, values: Sequence[object], name: str) -> pa.Array | None:
    """Return values as those of a key field; None if the texts of equal values in keys may differ."""
    literals = [literal(value, data_type, name) for value in values]
    # The texts of times depend on an option of each write, and on the writer's time zone.
    if (
        pa.types.is_floating(data_type)
        or pa.types.is_timestamp(data_type)
        or any(value.type != data_type for value in literals)
    ):
        return None
    return pa.array([value.as_py() for value in literals], data_type)


def _key_specs(spec: KeySpec) -> list[KeySpec]:
    """Return the possible encodings of the table's keys: releases differ for complex keys with one field."""
    if spec.keygen is KeyGenType.COMPLEX and len(spec.record_fields) == 1:
        return [replace(spec, named_parts=named) for named in (False, True)]
    return [spec]


def record_index_locations(table: MetadataTable, keys: pa.Array, partitions: Sequence[str] | None) -> pa.Table | None:
    """Return the locations of the records with these keys (`KEY_LOCATION_SCHEMA`), by the record index.

    A key of a partitioned index may be in several partitions; only these ``partitions`` are looked up. None: there are
    too many partitions to look up all.
    """
    groups = RecordIndexFileGroups.from_written_ids(table.groups(RECORD_INDEX)["file_id"].to_pylist())
    prefixes = groups.prefixes(partitions)
    if len(prefixes) > _MAX_INDEXES:
        return None
    tables = [KEY_LOCATION_SCHEMA.empty_table()]
    for prefix in prefixes:
        records = table.lookup(RECORD_INDEX, keys, [RECORD_INDEX_PAYLOAD], prefix=prefix)
        locations = decode_locations(records[RECORD_INDEX_PAYLOAD])
        columns = [records[KEY], locations["partition"], locations["file_id"]]
        tables.append(pa.Table.from_arrays(columns, schema=KEY_LOCATION_SCHEMA))
    return pa.concat_tables(tables)
