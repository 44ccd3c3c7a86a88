"""Several versions of the metadata table's records merged into one a key; see docs/format/metadata.md, 2.2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.merge_stats import merge_stats
from pyhudi.metadata.records import COLUMN_STATS, FILES, TYPE_FIELD, RecordType

KEY = "key"

Version: TypeAlias = pa.Table | pa.Array
"""Records (``key``, ``type``, payloads; every key once), or keys whose records were deleted."""

_MERGED = pa.array([RecordType.PARTITIONS, RecordType.FILES, RecordType.COLUMN_STATS, RecordType.PARTITION_STATS])
_LISTS = pa.array([RecordType.PARTITIONS, RecordType.FILES])


def merge_versions(versions: Sequence[Version], schema: pa.Schema) -> pa.Table:
    """Return one record of ``schema`` for each key that was not deleted last; ``versions`` come oldest first."""
    killed = pa.array([], pa.string())
    seen = pa.array([], pa.string())
    newest = [schema.empty_table()]
    # what is to be merged with something newer, newest first
    older: list[pa.Table] = []
    for number in range(len(versions) - 1, -1, -1):
        version = versions[number]
        if not isinstance(version, pa.Table):
            killed = pa.concat_arrays([killed, version.cast(pa.string())])
            continue
        if len(killed):
            version = version.filter(pc.invert(pc.is_in(version[KEY], value_set=killed)))
        keys = version[KEY].combine_chunks()
        if len(seen):
            again = pc.is_in(keys, value_set=seen)
            rest = version.filter(again)
            older.append(rest.filter(pc.is_in(rest[TYPE_FIELD].cast(pa.int64()), value_set=_MERGED.cast(pa.int64()))))
            version, keys = version.filter(pc.invert(again)), keys.filter(pc.invert(again))
        newest.append(version)
        if number:
            seen = pa.concat_arrays([seen, keys])
    result = pa.concat_tables(newest)
    older = [table for table in older if table.num_rows]
    if older:
        keys = pc.unique(pa.concat_tables(older)[KEY])
        mine = pc.is_in(result[KEY], value_set=keys)
        stack = [*reversed(older), result.filter(mine)]
        result = pa.concat_tables([result.filter(pc.invert(mine)), _merged(stack)])
    return _live(result)


def _merged(stack: list[pa.Table]) -> pa.Table:
    """One record a key of those that must be merged; tables come oldest first."""
    lists, others = [], []
    for table in stack:
        is_list = pc.is_in(table[TYPE_FIELD].cast(pa.int64()), value_set=_LISTS.cast(pa.int64()))
        lists.append(table.filter(is_list))
        others.append(table.filter(pc.invert(is_list)))
    return pa.concat_tables([_merge_lists(pa.concat_tables(lists)), _merge_stats(others)])


def _merge_lists(rows: pa.Table) -> pa.Table:
    """File lists: the last word on every name counts, and of sizes the greatest since the file was last removed."""
    if not rows.num_rows or FILES not in rows.column_names:
        return rows.slice(0, 0)
    rows = rows.combine_chunks()
    maps = rows[FILES].chunk(0)
    offsets = maps.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    names, infos = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    codes = rows[KEY].chunk(0).dictionary_encode()
    owner = np.repeat(codes.indices.to_numpy().astype(np.int64), np.diff(offsets))
    sizes: npt.NDArray[np.int64] = infos.field("size").to_numpy()
    gone: npt.NDArray[np.bool_] = infos.field("isDeleted").to_numpy(zero_copy_only=False)
    name_codes = names.dictionary_encode()
    pair = owner * (len(name_codes.dictionary) + 1) + name_codes.indices.to_numpy()
    order = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(pair[order]) != 0)) if len(order) else np.empty(0, np.int64)
    ends = np.append(starts[1:], len(order)) - 1
    live = order[ends][~gone[order[ends]]] if len(order) else np.empty(0, np.int64)
    # events before the last removal do not count
    at = np.arange(len(order))
    removed = np.maximum.accumulate(np.where(gone[order], at, -1)) if len(order) else at
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    counted = np.where(at > removed[ends[group]], sizes[order], 0) if len(order) else sizes
    greatest = np.maximum.reduceat(counted, starts) if len(starts) else counted
    live_groups = np.flatnonzero(~gone[order[ends]]) if len(order) else np.empty(0, np.int64)
    owners = owner[live]
    by_owner = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[by_owner], np.arange(len(codes.dictionary) + 1))
    items = pa.StructArray.from_arrays(
        [pa.array(greatest[live_groups][by_owner]), pa.repeat(pa.scalar(False), len(live))],
        fields=list(maps.type.item_type),
    )
    merged = pa.MapArray.from_arrays(
        pa.array(bounds.astype(np.int32)), names.take(pa.array(live[by_owner])), items, type=maps.type
    )
    # the newest record of each key lends its other fields
    newest = np.zeros(len(codes.dictionary), np.int64)
    newest[codes.indices.to_numpy()] = np.arange(rows.num_rows)
    result = rows.take(pa.array(newest))
    index = result.schema.get_field_index(FILES)
    return result.set_column(index, result.schema.field(index), merged)


def _merge_stats(stack: list[pa.Table]) -> pa.Table:
    """Statistics, table by table from the oldest on."""
    result = stack[0]
    for newer in stack[1:]:
        if not newer.num_rows:
            continue
        at = pc.index_in(newer[KEY].combine_chunks(), value_set=result[KEY].combine_chunks())
        both = newer.filter(at.is_valid()).combine_chunks()
        old = result.take(at.drop_null()).combine_chunks()
        index = newer.schema.get_field_index(COLUMN_STATS)
        if index >= 0 and both.num_rows:
            column = merge_stats(old[COLUMN_STATS].chunk(0), both[COLUMN_STATS].chunk(0))
            both = both.set_column(index, newer.schema.field(index), column)
        rest = result.filter(pc.invert(pc.is_in(result[KEY], value_set=newer[KEY].combine_chunks())))
        result = pa.concat_tables([rest, both, newer.filter(at.is_null())])
    return result


def _live(table: pa.Table) -> pa.Table:
    """Without records that say that there is nothing any more."""
    for name in table.column_names:
        kind = table.schema.field(name).type
        if (
            pa.types.is_struct(kind)
            and kind.get_field_index("isDeleted") >= 0
            and table[name].null_count < table.num_rows
        ):
            gone = pc.fill_null(pc.struct_field(table[name], "isDeleted"), False)
            if pc.any(gone).as_py():
                table = table.filter(pc.invert(gone))
    return table
