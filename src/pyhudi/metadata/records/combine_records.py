"""Combination of several versions of records of the metadata table; docs/format/metadata.md, section 2.2.

Readers and compactions share this code. In most partitions the newest version of a record is used. File lists and
statistics are combined; only these are decoded, and only for keys with several versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.format.avro.type_tree import record_type
from pyhudi.metadata.metadata_layout import FILES, RECORD_INDEX
from pyhudi.metadata.records.combine_file_lists import fold_lists
from pyhudi.metadata.records.combine_statistics import fold_statistics
from pyhudi.metadata.records.metadata_record import (
    BLOOM_FILTER_PAYLOAD,
    COLUMN_STATS_PAYLOAD,
    FILES_PAYLOAD,
    SECONDARY_INDEX_PAYLOAD,
    TYPE_FIELD,
    RecordType,
    decode,
    decoded_schema,
    encode,
    record_schema,
    with_schema,
)
from pyhudi.metadata.records.record_changes import RecordChanges

Column: TypeAlias = pa.Array | pa.ChunkedArray

_LISTS = (RecordType.PARTITIONS, RecordType.FILES)
_STATISTICS = (RecordType.COLUMN_STATS, RecordType.PARTITION_STATS)
_FOLDED = pa.array([*_LISTS, *_STATISTICS], pa.int64())
_MARKED = (BLOOM_FILTER_PAYLOAD, COLUMN_STATS_PAYLOAD, SECONDARY_INDEX_PAYLOAD)
"""Payloads with a deletion flag."""
_UNMARKED = (FILES, RECORD_INDEX)
"""Partitions without such payloads."""

_NO_TEXT = pa.array([], pa.string())
_NO_BYTES = pa.array([], pa.binary())


@dataclass(frozen=True, slots=True)
class Version:
    """Records of one block or file: unique keys (text) with values in the Avro ``schema``, followed by deleted keys."""

    keys: Column = field(default_factory=lambda: _NO_TEXT)
    values: Column = field(default_factory=lambda: _NO_BYTES)
    schema: str = ""
    deletes: Column = field(default_factory=lambda: _NO_TEXT)

    def where(self, mask: Column) -> Version:
        """Return the records of a mask."""
        return Version(self.keys.filter(mask), self.values.filter(mask), self.schema)


def combine_versions(versions: Sequence[Version], table_version: int) -> list[Version]:
    """Combine all versions, given the oldest first, into parts with unique keys and without deletes.

    Records may still have a deletion flag (`is_delete_mask`), and file lists may contain deleted files. Combined
    records have the schema of the table version.
    """
    standing, older = _split_by_delete(versions)
    older = [version.where(_is_folded(version)) for version in older]
    older = [version for version in older if len(version.keys)]
    if not older:
        return standing
    several = pc.unique(pa.concat_arrays([contiguous(version.keys) for version in older]))
    rest, newest = [], []
    for version in standing:
        is_repeated = pc.is_in(version.keys, value_set=several)
        rest.append(version.where(pc.invert(is_repeated)))
        newest.append(version.where(is_repeated))
    folded = _fold([v for v in (*older, *newest) if len(v.keys)], table_version)
    return [version for version in (*rest, folded) if len(version.keys)]


def fold_versions(partition: str, versions: Sequence[Version], table_version: int) -> RecordChanges:
    """Return the records that a compaction keeps: `combine_versions` in the current schema, without deletes."""
    parts = [_normal(version, table_version) for version in combine_versions(versions, table_version)]
    keys = pa.concat_arrays([_NO_TEXT, *(contiguous(part.keys) for part in parts)])
    values = pa.concat_arrays([_NO_BYTES, *(contiguous(part.values) for part in parts)])
    if partition in _UNMARKED or not len(keys):
        return RecordChanges(keys, values)
    table = decode(values, record_schema(table_version), {name: {"isDeleted": None} for name in _MARKED})
    deleted = is_delete_mask(table)
    if not pc.any(deleted).as_py():
        return RecordChanges(keys, values)
    kept = contiguous(pc.invert(deleted))
    return RecordChanges(keys.filter(kept), values.filter(kept))


def is_delete_mask(table: pa.Table) -> Column:
    """Return a mask of the decoded records that are deletes."""
    deleted: Column = pa.repeat(pa.scalar(False), table.num_rows)
    for name in _MARKED:
        if name not in table.column_names or table[name].null_count == table.num_rows:
            continue
        if table.schema.field(name).type.get_field_index("isDeleted") >= 0:
            deleted = pc.or_(deleted, pc.fill_null(pc.struct_field(table[name], "isDeleted"), False))
    return deleted


def _split_by_delete(versions: Sequence[Version]) -> tuple[list[Version], list[Version]]:
    """Return the newest record of each key that was not deleted later, and its earlier records since its last delete;
    both in parts, oldest first."""
    standing: list[Version] = []
    older: list[Version] = []
    deleted, newer_keys = _NO_TEXT, _NO_TEXT
    for number in range(len(versions) - 1, -1, -1):
        version = versions[number]
        deleted = pa.concat_arrays([deleted, contiguous(version.deletes)]) if len(version.deletes) else deleted
        version = _split(version, deleted)[0]
        version, again = _split(version, newer_keys)
        if len(again.keys):
            older.append(again)
        if len(version.keys):
            standing.append(version)
            newer_keys = pa.concat_arrays([newer_keys, contiguous(version.keys)]) if number else newer_keys
    return standing[::-1], older[::-1]


def _split(version: Version, keys: pa.Array) -> tuple[Version, Version]:
    """Return the records without some keys, and those with them."""
    nothing = Version(schema=version.schema)
    if not len(keys) or not len(version.keys):
        return version, nothing
    is_selected = pc.is_in(version.keys, value_set=keys)
    if not pc.any(is_selected).as_py():
        return version, nothing
    return version.where(pc.invert(is_selected)), version.where(is_selected)


def _is_folded(version: Version) -> Column:
    """Return a mask of the records whose type combines versions."""
    types = decode(version.values, version.schema, ())[TYPE_FIELD]
    return contiguous(pc.is_in(types.cast(pa.int64()), value_set=_FOLDED))


def _fold(versions: Sequence[Version], table_version: int) -> Version:
    """Fold versions, given the oldest first, into one record per key."""
    payloads = (FILES_PAYLOAD, COLUMN_STATS_PAYLOAD)
    schema = decoded_schema(table_version, payloads)
    decoded = [with_schema(decode(version.values, version.schema, payloads), schema) for version in versions]
    table = pa.concat_tables(decoded).combine_chunks()
    keys = pa.concat_arrays([contiguous(version.keys) for version in versions])
    codes = keys.dictionary_encode()
    code = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((np.arange(len(code)), code))
    last = np.append(np.diff(code[order]) != 0, True)
    # The newest record of a key determines its type.
    types = np.zeros(len(codes.dictionary), np.int64)
    types[code[order][last]] = table[TYPE_FIELD].to_numpy().astype(np.int64)[order][last]
    found_keys, found_values = [], []
    for kind in (*_LISTS, *_STATISTICS):
        rows_of_kind = order[types[code[order]] == kind]
        if not len(rows_of_kind):
            continue
        groups = np.cumsum(np.append(0, np.diff(code[rows_of_kind]) != 0))
        payload = contiguous(table[FILES_PAYLOAD if kind in _LISTS else COLUMN_STATS_PAYLOAD]).take(
            pa.array(rows_of_kind)
        )
        one = fold_lists(payload, groups) if kind in _LISTS else fold_statistics(payload, groups)
        found_keys.append(codes.dictionary.take(pa.array(np.flatnonzero(types == kind))))
        found_values.append(encode(kind, one, table_version))
    return Version(pa.concat_arrays(found_keys), pa.concat_arrays(found_values), record_schema(table_version))


def _normal(version: Version, table_version: int) -> Version:
    """Return the records with values in the current schema."""
    schema = record_schema(table_version)
    if version.schema == schema or record_type(version.schema) == record_type(schema):
        return Version(version.keys, version.values, schema)
    table = decode(version.values, version.schema).combine_chunks()
    kinds = table[TYPE_FIELD].to_numpy()
    parts, places = [], []
    for kind in np.unique(kinds):
        record, rows = RecordType(int(kind)), np.flatnonzero(kinds == kind)
        parts.append(encode(record, contiguous(table[record.payload]).take(pa.array(rows)), table_version))
        places.append(rows)
    back = np.argsort(np.concatenate(places), kind="stable")
    return Version(version.keys, pa.concat_arrays(parts).take(pa.array(back)), schema)
