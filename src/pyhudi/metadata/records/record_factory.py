"""Records of the metadata table that describe files; docs/format/metadata.md, sections 2.3 to 2.6 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.format.base_file.column_bounds import COUNTS
from pyhudi.metadata.records.metadata_keys import (
    ALL_PARTITIONS,
    apply_by_value,
    bloom_filter_keys,
    column_ids,
    expression_partition_keys,
    hashed_file_names,
    partition_ids,
    partition_names,
    partition_stats_keys,
)
from pyhudi.metadata.records.metadata_record import RecordType, encode, payload_type
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.stats_values import value_type, wrap_values

FILE_COLUMNS = pa.schema([("partition", pa.string()), ("name", pa.string()), ("size", pa.int64())])
"""Files as input of the functions in this module: names without folders, sizes in bytes. Other columns are ignored."""

_NO_TEXT = pa.array([], pa.string())


def file_records(
    files: pa.Table,
    partitions: Iterable[str],
    version: int,
    deleted: pa.Table | None = None,
    *,
    is_initial: bool = False,
    dropped: Iterable[str] = (),
) -> RecordChanges:
    """Return records of the partition ``files``: the list of partitions, and for each partition its new files.

    Args:
        files: New files (FILE_COLUMNS).
        partitions: Partitions to list, including those of the files.
        version: Table version.
        deleted: Deleted files (FILE_COLUMNS; sizes are ignored).
        is_initial: The partitions have no records yet, so those without files get one, too.
        dropped: Partitions that are no longer listed, regardless of their files.
    """
    entries = _entries(files, deleted)
    dropped_names = pa.array(sorted(set(partition_names(list(dropped)).to_pylist())), pa.string())
    listed_names = sorted(
        {
            *partition_names(list(partitions)).to_pylist(),
            *pc.unique(entries["partition"]).to_pylist(),
            *dropped_names.to_pylist(),
        }
    )
    entries = entries.filter(pc.invert(pc.is_in(entries["partition"], value_set=dropped_names))).combine_chunks()
    texts = pa.array(listed_names, pa.string())
    is_dropped = pc.is_in(texts, value_set=dropped_names)
    lists = _maps([len(listed_names)], texts, pa.repeat(0, len(listed_names)), is_dropped, version)
    runs = pc.value_counts(entries["partition"])
    with_files = runs.field("values").cast(pa.string())
    counts = runs.field("counts").to_pylist()
    if is_initial:
        others = set(with_files.to_pylist())
        empty = [name for name in listed_names if name not in others]
        with_files = pa.concat_arrays([with_files, pa.array(empty, pa.string())])
        counts += [0] * len(empty)
    sizes = pc.if_else(entries["gone"], 0, entries["size"])
    maps = _maps(counts, entries["name"], sizes, entries["gone"], version)
    keys = pa.concat_arrays([pa.array([ALL_PARTITIONS]), with_files])
    values = [encode(RecordType.PARTITIONS, lists, version), encode(RecordType.FILES, maps, version)]
    return RecordChanges(keys, pa.concat_arrays(values), dropped_names)


def _entries(files: pa.Table, deleted: pa.Table | None) -> pa.Table:
    """Return new and deleted files by partition as in keys, with the column ``gone`` (deleted), ordered by both
    names."""
    parts = [
        part.select(FILE_COLUMNS.names).append_column("gone", pa.repeat(pa.scalar(is_gone), part.num_rows))
        for part, is_gone in ((files, False), (deleted, True))
        if part is not None
    ]
    entries = pa.concat_tables(parts)
    entries = entries.set_column(0, "partition", partition_names(entries["partition"]))
    return entries.sort_by([("partition", "ascending"), ("name", "ascending")])


def _maps(counts: list[int], names: pa.Array, sizes: pa.Array, deleted: pa.Array, version: int) -> pa.MapArray:
    data_type = payload_type(RecordType.FILES, version)
    names, sizes = contiguous(names), contiguous(sizes).cast(pa.int64())
    columns = {"size": sizes, "isDeleted": contiguous(deleted)}
    items = pa.StructArray.from_arrays([columns[f.name] for f in data_type.item_type], fields=list(data_type.item_type))
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    return pa.MapArray.from_arrays(offsets, names, items, type=data_type)


def column_stats_records(
    files: pa.Table, bounds: pa.StructArray, version: int, *, typed: bool = False
) -> RecordChanges:
    """Return records of the partition ``column_stats``: one per file and column.

    ``bounds`` are those of the files (FILE_COLUMNS), row by row. A file with an unknown column gets no records at all,
    because readers consider a missing column one without values. ``typed``: records without values have the type of
    the column, too.
    """
    complete = _is_complete(bounds)
    files, bounds = files.filter(complete), bounds.filter(complete)
    keys, payloads = [_NO_TEXT], []
    names, partitions = contiguous(files["name"]), contiguous(files["partition"])
    ids = hashed_file_names(names)
    of_partitions = apply_by_value(partitions, partition_ids)
    loose, with_type = (pa.repeat(pa.scalar(value), len(names)) for value in (False, typed))
    for i, field in enumerate(bounds.type):
        if not len(names):
            break
        (column,) = column_ids([field.name])
        keys.append(pc.binary_join_element_wise(column, of_partitions, ids, ""))
        payloads.append(_stats_payload(names, field.name, bounds.field(i), version, tight=loose, typed=with_type))
    return RecordChanges(pa.concat_arrays(keys), _encoded(RecordType.COLUMN_STATS, payloads, version))


def partition_stats_records(
    partitions: pa.Array,
    bounds: pa.StructArray,
    version: int,
    *,
    tight: Iterable[str],
    dropped: Iterable[str],
    of_expression: bool = False,
) -> RecordChanges:
    """Return records of the partition ``partition_stats``, or of an expression index, from the bounds of files in these
    ``partitions``.

    Args:
        partitions: Partition of each row of bounds.
        bounds: One row per file; unknown bounds mean that the column has not changed in the partition.
        version: Table version.
        tight: Partitions of which these are all files. Records of others widen the existing ones.
        dropped: Partitions without any file from now on.
        of_expression: The records are those of an expression index; such without values have its type, too.
    """
    make_keys = expression_partition_keys if of_expression else partition_stats_keys
    columns = [field.name for field in bounds.type]
    exact = pa.array(sorted(set(tight)), pa.string())
    keys, payloads = [_NO_TEXT], []
    for i, name in enumerate(columns):
        paths, joined = _combine_by_partition(partitions, bounds.field(i))
        if not len(paths):
            continue
        keys.append(make_keys(pa.repeat(pa.scalar(name), len(paths)), paths))
        tights = pc.is_in(paths, value_set=exact)
        # A record that widens an earlier one must have the type of its value, by which the two are merged.
        with_type = pc.or_(pc.invert(tights), pa.scalar(of_expression))
        payloads.append(_stats_payload(partition_names(paths), name, joined, version, tight=tights, typed=with_type))
    deleted_keys = [make_keys(pa.array(columns, pa.string()), pa.repeat(pa.scalar(p), len(columns))) for p in dropped]
    values = _encoded(RecordType.PARTITION_STATS, payloads, version)
    return RecordChanges(pa.concat_arrays(keys), values, pa.concat_arrays([_NO_TEXT, *deleted_keys]))


def bloom_records(files: pa.Table, texts: pa.Array, kinds: pa.Array, instant: str, version: int) -> RecordChanges:
    """Return records of the partition ``bloom_filters`` for base files (FILE_COLUMNS) with these filters, null without
    one."""
    has_filter = pc.is_valid(texts)
    files, texts, kinds = files.filter(has_filter), texts.filter(has_filter), kinds.filter(has_filter)
    keys = bloom_filter_keys(contiguous(files["partition"]), contiguous(files["name"]))
    payload = pa.table(
        {
            "type": pc.fill_null(kinds, "SIMPLE"),
            "timestamp": pa.repeat(pa.scalar(instant), len(texts)),
            "bloomFilter": contiguous(texts).cast(pa.binary()),
            "isDeleted": pa.repeat(pa.scalar(False), len(texts)),
        }
    )
    return RecordChanges(keys, encode(RecordType.BLOOM_FILTER, payload, version))


def _encoded(kind: RecordType, payloads: list[pa.Table], version: int) -> pa.BinaryArray:
    """Encode all payloads at once, because most of the cost is independent of their number."""
    return encode(kind, pa.concat_tables(payloads), version) if payloads else pa.array([], pa.binary())


def _stats_payload(
    names: pa.Array, column: str, bounds: pa.StructArray, version: int, *, tight: pa.Array, typed: pa.Array
) -> pa.Table:
    """Return the payloads of the statistics of a column. ``typed``: the record has the type of the column even without
    values."""
    minima, maxima, *numbers = (pc.struct_field(bounds, name) for name in ("min", "max", *COUNTS))
    counts = dict(zip(("valueCount", "nullCount", "totalSize", "totalUncompressedSize"), numbers, strict=True))
    payload = {
        "fileName": names,
        "columnName": pa.repeat(pa.scalar(column), len(names)),
        "minValue": wrap_values(minima, version),
        "maxValue": wrap_values(maxima, version),
        **counts,
        "isDeleted": pa.repeat(pa.scalar(False), len(names)),
    }
    if version >= 8:
        payload["isTightBound"] = tight
    if version >= 9:
        payload["valueType"] = value_type(minima.type, pc.and_not(pc.is_null(minima), typed))
    return pa.table(payload)


def _is_complete(bounds: pa.StructArray) -> pa.Array:
    complete = bounds.is_valid()
    for i in range(bounds.type.num_fields):
        complete = pc.and_(complete, bounds.field(i).is_valid())
    return complete


def joined_bounds(bounds_by_file: pa.Table) -> pa.Table:
    """Combine bounds by partition (two columns: partitions and bounds): one row per partition; null if nothing is known
    of a column."""
    partitions, bounds = (contiguous(column) for column in bounds_by_file.columns)
    paths = pc.unique(partitions)
    children = []
    for i in range(bounds.type.num_fields):
        bounded_paths, joined = _combine_by_partition(partitions, bounds.field(i))
        children.append(joined.take(pc.index_in(paths, value_set=bounded_paths)))
    combined_bounds = pa.StructArray.from_arrays(children, fields=list(bounds.type))
    return pa.table([paths, combined_bounds], names=bounds_by_file.column_names)


def _combine_by_partition(partitions: pa.Array, column: pa.StructArray) -> tuple[pa.Array, pa.StructArray]:
    """Combine the bounds of a column in all files of each partition. Return the partitions with known bounds, and one
    row each."""
    has_bounds = column.is_valid()
    if len(pc.unique(partitions)) == len(partitions):
        return partitions.filter(has_bounds), column.filter(has_bounds)
    rows = pa.table(
        [partitions.filter(has_bounds), *column.filter(has_bounds).flatten()], names=["p", *column.type.names]
    )
    spans = [("min", "min"), ("max", "max"), *((name, "sum") for name in COUNTS)]
    if pa.types.is_floating(column.type.field("min").type):
        is_nan = pc.is_nan(rows["max"])
        rows = rows.append_column("nan", pc.fill_null(is_nan, False))
        for name in ("min", "max"):
            plain = pc.if_else(pc.is_nan(rows[name]), pa.scalar(None, rows[name].type), rows[name])
            rows = rows.set_column(rows.column_names.index(name), name, plain)
        spans.append(("nan", "any"))
    combined = rows.group_by("p", use_threads=False).aggregate(spans).combine_chunks()
    ends = {name: contiguous(combined[f"{name}_{name}"]) for name in ("min", "max")}
    if "nan_any" in combined.column_names:
        nan = contiguous(combined["nan_any"])
        value = pa.scalar(float("nan"), ends["max"].type)
        ends = {
            "min": pc.if_else(pc.and_(nan, pc.is_null(ends["min"])), value, ends["min"]),
            "max": pc.if_else(nan, value, ends["max"]),
        }
    sums = [contiguous(combined[f"{name}_sum"]).cast(pa.int64()) for name in COUNTS]
    return contiguous(combined["p"]), pa.StructArray.from_arrays(
        [ends["min"], ends["max"], *sums], fields=list(column.type)
    )


def merged_records(records: Iterable[Mapping[str, RecordChanges]]) -> dict[str, RecordChanges]:
    """Combine records by partition; keys must be unique."""
    by_partition: dict[str, list[RecordChanges]] = {}
    for one in records:
        for partition, part in one.items():
            by_partition.setdefault(partition, []).append(part)
    return {
        partition: RecordChanges(
            pa.concat_arrays([p.keys for p in parts]),
            pa.concat_arrays([p.values for p in parts]),
            pa.concat_arrays([p.deletes for p in parts]),
        )
        for partition, parts in by_partition.items()
    }
