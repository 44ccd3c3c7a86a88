"""Column and partition statistics of the metadata table as bounds of typed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.metadata_layout import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records import metadata_keys as keys
from pyhudi.metadata.records.metadata_record import COLUMN_STATS as PAYLOAD
from pyhudi.metadata.records.stats_values import unwrap, wanted_members
from pyhudi.read.pruning.min_max import Bounds, Mask
from pyhudi.schema.type_conversion import convert

if TYPE_CHECKING:
    from pyhudi.format.avro.columnar_decoder import Wanted


_FIELDS = ("fileName", "valueCount", "nullCount", "isDeleted", "valueType")
_SHORT_WHOLE = 2.0**24
"""Whole numbers less than this are the same as short and as long floats."""
_FEW = 4
"""If at most one in this number of all partitions is wanted, statistics are looked up partition by partition."""


def _wanted(kind: pa.DataType) -> dict[str, Wanted]:
    """Fields of the statistics to decode for a column of a type."""
    members = wanted_members(kind)
    return {PAYLOAD: {**dict.fromkeys(_FIELDS), "minValue": members, "maxValue": members}}


def is_ordered_type(kind: pa.DataType) -> bool:
    """Return True if statistics of columns of a type say anything about comparisons."""
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column in a partition of the metadata table, one row per file: keys, names of files, and the
    rest of the statistics."""

    keys: pa.StringArray
    names: pa.StringArray
    payload: pa.StructArray
    counts_rows: bool

    @classmethod
    def load(
        cls,
        table: MetadataTable,
        column: str,
        kind: pa.DataType,
        partitions: Sequence[str],
        known_partitions: int,
        index: str = COLUMN_STATS,
    ) -> ColumnStatistics:
        """Read those of the files in some partitions, and maybe of others; ``known_partitions`` is how many the table
        has."""
        column_id = keys.column_ids([column])[0].as_py()
        prefixes = [column_id]
        if len(partitions) * _FEW <= known_partitions:
            prefixes = [column_id + text for text in keys.partition_ids(partitions).to_pylist()]
        stats = table.prefixes(index, prefixes, _wanted(kind)).combine_chunks()
        payload = stats[PAYLOAD].chunk(0) if stats.num_rows else pa.array([], stats[PAYLOAD].type)
        key = stats[KEY].chunk(0) if stats.num_rows else pa.array([], pa.string())
        return cls(key, payload.field("fileName"), _without_names(payload), index == COLUMN_STATS)

    def bounds(self, kind: pa.DataType) -> Bounds:
        """The bounds of a column of that type, in the order of the keys."""
        return _bounds(self.payload, kind, counts_rows=self.counts_rows)

    def places(self, names: pa.StringArray, rows: npt.NDArray[np.int64], partitions: pa.StringArray) -> pa.Array:
        """Return the rows of the statistics of files, by their names and the rows of their ``partitions``; null where
        there are none."""
        at = pc.index_in(names, value_set=self.names)
        hit = np.bincount(at.drop_null().to_numpy(), minlength=len(self.names))
        ids = keys.partition_ids(partitions)
        # a name that is there twice is found at its first place alone
        if bool(hit.all()) or pc.count_distinct(self.names).as_py() == len(self.names):
            found = pc.fill_null(at, 0).to_numpy()
            same = _same(ids, rows, self.keys, found) if len(self.keys) else np.zeros(len(names), np.bool_)
            return pc.if_else(pc.and_(pa.array(same), at.is_valid()), at, pa.scalar(None, at.type))
        # files of the same name in several partitions
        full = pc.binary_join_element_wise(ids.take(pa.array(rows)), names, "/")
        theirs = pc.utf8_slice_codeunits(self.keys, keys.SHORT_ID, 2 * keys.SHORT_ID)
        return pc.index_in(full, value_set=pc.binary_join_element_wise(theirs, self.names, "/"))


def file_bounds(
    table: MetadataTable,
    column: str,
    kind: pa.DataType,
    files: pa.Table,
    partitions: Sequence[str],
    known_partitions: int,
    index: str = COLUMN_STATS,
) -> tuple[Bounds, Mask]:
    """Return the bounds of a column in each file, and which files have statistics at all.

    ``files`` has the columns ``partition`` and ``name``; ``partitions`` are those it has, ``known_partitions`` how many
    the table has; ``index`` is the partition of the metadata table that has the statistics.
    """
    found = ColumnStatistics.load(table, column, kind, partitions, known_partitions, index)
    paths = pa.array(partitions, pa.string())
    rows = pc.index_in(files["partition"].combine_chunks(), value_set=paths).to_numpy()
    at = found.places(files["name"].combine_chunks(), rows, paths)
    some = ColumnStatistics(found.keys, found.names, found.payload.take(at), found.counts_rows)
    return some.bounds(kind), at.is_valid().to_numpy(zero_copy_only=False)


def partition_bounds(
    table: MetadataTable, column: str, kind: pa.DataType, partitions: pa.Array, index: str = PARTITION_STATS
) -> Bounds:
    """Return the bounds of a column in each partition, given by path; nothing is known of those without statistics.
    ``index`` is the partition of the metadata table that has the statistics."""
    make = keys.partition_stats_keys if index == PARTITION_STATS else keys.expression_partition_keys
    wanted = make(pa.array([column] * len(partitions), pa.string()), partitions)
    stats = table.lookup(index, wanted, _wanted(kind))
    if not stats.num_rows:
        return _nothing(kind, len(partitions))
    stats = stats.combine_chunks()
    at = pc.index_in(wanted, value_set=stats[KEY].chunk(0))
    return _bounds(stats[PAYLOAD].chunk(0).take(at), kind, counts_rows=index == PARTITION_STATS)


def _without_names(payload: pa.StructArray) -> pa.StructArray:
    """Statistics without the names of their files, which are most of them."""
    fields = [field for field in payload.type if field.name != "fileName"]
    return pa.StructArray.from_arrays(
        [payload.field(field.name) for field in fields],
        fields=fields,
        mask=payload.is_null() if payload.null_count else None,
    )


def _same(ids: pa.StringArray, rows: npt.NDArray[np.int64], key: pa.StringArray, places: npt.NDArray[Any]) -> Mask:
    """Mask of the rows whose ids are those of the partitions in the keys at the given places."""
    theirs = _words(key, keys.SHORT_ID, 2 * keys.SHORT_ID + keys.FILE_ID)
    if theirs is None:
        parts = pc.utf8_slice_codeunits(key, keys.SHORT_ID, 2 * keys.SHORT_ID)
        return _flags(pc.equal(ids.take(pa.array(rows)), parts.take(pa.array(places))))
    mine = _words(ids, 0, keys.SHORT_ID)
    assert mine is not None
    same: Mask = (mine[rows] == theirs[places]).all(axis=1)
    return same


def _words(texts: pa.StringArray, start: int, size: int) -> npt.NDArray[np.uint32] | None:
    """The letters of a short id from ``start`` on in texts that are all of the ``size``, as numbers; None of others."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)
    if not bool((np.diff(offsets) == size).all()):
        return None
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]].reshape(-1, size)
    return np.ascontiguousarray(data[:, start : start + keys.SHORT_ID]).view(np.uint32)


def _bounds(stats: pa.StructArray, kind: pa.DataType, *, counts_rows: bool = True) -> Bounds:
    """Bounds of statistics; nothing is known where they are null. ``counts_rows``: rows without a value are counted
    among the values, as not in expression indexes."""
    types = stats.field("valueType") if stats.type.get_field_index("valueType") >= 0 else None
    there = stats.is_valid().to_numpy(zero_copy_only=False)
    least, low_known = unwrap(stats.field("minValue"), kind, types)
    greatest, high_known = unwrap(stats.field("maxValue"), kind, types)
    if pa.types.is_float64(kind):
        least = pc.min_element_wise(least, _by_text(least), skip_nulls=False)
        greatest = pc.max_element_wise(greatest, _by_text(greatest), skip_nulls=False)
    bounded = there & _flags(least.is_valid()) & _flags(greatest.is_valid()) & low_known & high_known
    if pa.types.is_floating(kind):
        bounded &= ~(_flags(pc.is_nan(least)) | _flags(pc.is_nan(greatest)))
    bounded &= ~_flags(pc.greater(least, greatest))
    rows, nulls = stats.field("valueCount"), stats.field("nullCount")
    rows = rows if counts_rows else pc.add(rows, nulls)
    counted = there & _flags(pc.greater(rows, 0)) & _flags(pc.greater_equal(nulls, 0))
    empty = there & low_known & high_known & ~_flags(least.is_valid()) & ~_flags(greatest.is_valid())
    # no bounds and not all of them nulls: a file without statistics
    only_nulls = empty & counted & _flags(pc.equal(rows, nulls))
    no_nulls = bounded & counted & _flags(pc.equal(nulls, 0))
    mask = pa.array(bounded)
    none = pa.scalar(None, kind)
    return Bounds(pc.if_else(mask, least, none), pc.if_else(mask, greatest, none), only_nulls, no_nulls)


def _by_text(values: pa.DoubleArray) -> pa.DoubleArray:
    """Convert short floats, given bit by bit, to the values that readers make of them; others as they are.

    Statistics of a column that was widened may have either, and do not tell which.
    """
    short = values.cast(pa.float32(), safe=False)
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), _SHORT_WHOLE))
    maybe = pc.fill_null(pc.and_not(pc.equal(short.cast(pa.float64()), values), whole), False)
    if not pc.any(maybe).as_py():
        return values
    return pc.replace_with_mask(values, maybe, convert(short.filter(maybe), pa.float64()))


def _nothing(kind: pa.DataType, count: int) -> Bounds:
    none = np.zeros(count, np.bool_)
    return Bounds(pa.nulls(count, kind), pa.nulls(count, kind), none, none)


def _flags(mask: pa.Array) -> Mask:
    flags: Mask = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return flags
