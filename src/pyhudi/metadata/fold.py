"""Several versions of records of the metadata table, oldest first, made one; docs/format/metadata.md, section 2.2.

In most partitions the newest version stands for itself. Lists of files and statistics are put together; only for those
are values looked into, and only where a key has several versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.avrotypes import record_type
from pyhudi.metadata.deltas import Records
from pyhudi.metadata.foldstats import fold_statistics
from pyhudi.metadata.home import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.metadata.keys import ALL_PARTITIONS
from pyhudi.metadata.records import PAYLOADS, RecordType, decode, encode, payload_type, record_schema

Index = npt.NDArray[np.int64]

_SECONDARY, _EXPRESSION = "secondary_index_", "expr_index_"
_MARKED = (COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS)
"""Partitions whose records may say of themselves that they are deleted; so do those of some indexes."""


@dataclass(frozen=True, slots=True)
class Version:
    """What one block or file says: records, and the Avro schema of their values."""

    records: Records
    schema: str


def fold_versions(partition: str, versions: Sequence[Version], table_version: int) -> Records:
    """The records that are left of all versions (oldest first): each key once, and no deletes."""
    keys, values, source = _events(versions, table_version)
    if not len(keys):
        return Records()
    codes = keys.dictionary_encode()
    code = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((np.arange(len(code)), code))
    last = np.append(np.diff(code[order]) != 0, True)
    newest: Index = order[last]
    newest = newest[source[newest] >= 0]
    multiple = np.zeros(len(codes.dictionary), np.bool_)
    if partition == FILES or partition in (COLUMN_STATS, PARTITION_STATS) or partition.startswith(_EXPRESSION):
        events = _since_delete(code[order], source[order])
        multiple = np.bincount(code[order][events], minlength=len(multiple)) > 1
        folded = order[events][multiple[code[order][events]]]
        newest = newest[~multiple[code[newest]]]
    single_keys, single_values = keys.take(pa.array(newest)), values.take(pa.array(source[newest]))
    if multiple.any():
        more = _fold_multiple(partition, keys, values, folded, code, source, table_version)
        single_keys = pa.concat_arrays([single_keys, more.keys])
        single_values = pa.concat_arrays([single_values, more.values])
    return _without_deleted(partition, Records(single_keys, single_values), table_version)


def _events(versions: Sequence[Version], table_version: int) -> tuple[pa.StringArray, pa.BinaryArray, Index]:
    """Keys of all records and deletes in their order, all values, and of each key the place of its value (-1: it is
    deleted)."""
    keys: list[pa.Array] = [pa.array([], pa.string())]
    values: list[pa.Array] = [pa.array([], pa.binary())]
    source = [np.zeros(0, np.int64)]
    start = 0
    for version in versions:
        records = version.records
        keys += [records.keys.cast(pa.string()), records.deletes.cast(pa.string())]
        values.append(_normal(records.values, version.schema, table_version))
        source += [np.arange(start, start + len(records.keys)), np.full(len(records.deletes), -1, np.int64)]
        start += len(records.keys)
    return pa.concat_arrays(keys), pa.concat_arrays(values), np.concatenate(source)


def _normal(values: pa.BinaryArray, schema: str, table_version: int) -> pa.BinaryArray:
    """Values in the schema that is written today."""
    own = record_schema(table_version)
    if schema == own or not len(values) or record_type(schema) == record_type(own):
        return values
    table = decode(values, schema).combine_chunks()
    parts, places = [pa.array([], pa.binary())], [np.zeros(0, np.int64)]
    kinds = table["type"].to_numpy()
    for kind in np.unique(kinds):
        mine = np.flatnonzero(kinds == kind)
        record = RecordType(int(kind))
        payload = table[record.payload].combine_chunks().take(pa.array(mine))
        parts.append(encode(record, payload, table_version))
        places.append(mine)
    back = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(back))


def _since_delete(code: Index, source: Index) -> Index:
    """Of events in the order of their keys, those that come after the last delete of the key."""
    places = np.arange(len(code))
    gone = np.where(source < 0, places, -1)
    # the last delete of each key, seen from all of its events
    starts = np.flatnonzero(np.append(True, np.diff(code) != 0))
    latest = np.maximum.reduceat(gone, starts)
    return places[places > np.repeat(latest, np.diff(np.append(starts, len(code))))]


def _fold_multiple(
    partition: str,
    keys: pa.StringArray,
    values: pa.BinaryArray,
    events: Index,
    code: Index,
    source: Index,
    table_version: int,
) -> Records:
    """Fold the records of keys with several versions; ``events`` are in the order of keys, then of versions."""
    picked = decode(values.take(pa.array(source[events])), record_schema(table_version), PAYLOADS[:3]).combine_chunks()
    groups = np.cumsum(np.append(True, np.diff(code[events]) != 0)) - 1
    heads = np.flatnonzero(np.append(True, np.diff(groups) != 0))
    found_keys = keys.take(pa.array(events[heads]))
    if partition == FILES:
        return _fold_files(found_keys, picked["filesystemMetadata"].combine_chunks(), groups, table_version)
    payload = fold_statistics(picked["ColumnStatsMetadata"].combine_chunks(), groups)
    kind = RecordType.PARTITION_STATS if partition == PARTITION_STATS else RecordType.COLUMN_STATS
    return Records(found_keys, encode(kind, payload, table_version))


def _fold_files(keys: pa.StringArray, maps: pa.MapArray, groups: Index, table_version: int) -> Records:
    bounds = maps.offsets.to_numpy().astype(np.int64)
    counts, total = np.diff(bounds), int(bounds[-1] - bounds[0])
    names, items = maps.keys.slice(bounds[0], total), maps.items.slice(bounds[0], total)
    group = np.repeat(groups, counts)
    code = names.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    size = pc.struct_field(items, "size").to_numpy()
    gone = pc.struct_field(items, "isDeleted").to_numpy(zero_copy_only=False)
    order = np.lexsort((np.arange(len(code)), code, group))
    last = np.append((np.diff(code[order]) != 0) | (np.diff(group[order]) != 0), True) if len(order) else order > 0
    starts = np.flatnonzero(np.append(True, last[:-1])) if len(order) else np.zeros(0, np.int64)
    # a tombstone after an entry takes it away and leaves nothing; what comes later begins anew
    run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    tomb = np.where(gone[order], np.arange(len(order)), -1)
    latest = np.maximum.reduceat(tomb, starts) if len(starts) else tomb
    alive = np.arange(len(order)) > latest[run]
    sizes = np.full(len(starts), -1, np.int64)
    np.maximum.at(sizes, run[alive], size[order][alive])
    is_live = sizes >= 0
    ends = np.append(starts[1:], len(order)) - 1
    took_away = (ends > starts) & ~gone[order[np.maximum(ends - 1, 0)]] if len(starts) else is_live
    kept = is_live | ~took_away  # a tombstone of what was not there stays
    heads = order[starts][kept]
    result_group, result_gone = group[heads], ~is_live[kept]
    kind = payload_type(RecordType.FILES, table_version)
    columns = {"size": pa.array(np.where(result_gone, 0, sizes[kept])), "isDeleted": pa.array(result_gone)}
    structs = pa.StructArray.from_arrays([columns[f.name] for f in kind.item_type], fields=list(kind.item_type))
    per_group = np.bincount(result_group, minlength=len(keys))
    offsets = pa.array(np.append(0, np.cumsum(per_group)).astype(np.int32))
    folded = pa.MapArray.from_arrays(offsets, names.take(pa.array(heads)), structs, type=kind)
    is_list = pc.equal(keys, ALL_PARTITIONS)
    lists = encode(RecordType.PARTITIONS, folded.filter(is_list), table_version)
    others = encode(RecordType.FILES, folded.filter(pc.invert(is_list)), table_version)
    return Records(
        pa.concat_arrays([keys.filter(is_list), keys.filter(pc.invert(is_list))]), pa.concat_arrays([lists, others])
    )


def _without_deleted(partition: str, records: Records, table_version: int) -> Records:
    """Leave out records that say that they are deleted."""
    marked = partition in _MARKED or partition.startswith((_SECONDARY, _EXPRESSION))
    if not marked or not len(records.keys):
        return records
    names = [name for name in PAYLOADS[1:] if name != "recordIndexMetadata"]
    table = decode(records.values, record_schema(table_version), {name: {"isDeleted": None} for name in names})
    gone = pa.repeat(pa.scalar(False), len(records.keys))
    for name in names:
        if name in table.column_names:
            flags = pc.struct_field(table[name].combine_chunks(), "isDeleted")
            gone = pc.or_(gone, pc.fill_null(flags, False))
    if not pc.any(gone).as_py():
        return records
    kept = pc.invert(gone)
    return Records(records.keys.filter(kept), records.values.filter(kept))
