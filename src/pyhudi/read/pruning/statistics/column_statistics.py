"""Column and partition statistics of the metadata table as bounds of typed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.format.avro.columnar_decoder import Projection
from pyhudi.metadata.metadata_layout import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import COLUMN_STATS_PAYLOAD
from pyhudi.metadata.records.stats_values import members_of_type, unwrap
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds, Mask
from pyhudi.schema.type_conversion import convert

_FIELDS = ("fileName", "valueCount", "nullCount", "isDeleted", "valueType")
_SHORT_WHOLE = 2.0**24
"""Maximum integer below which float32 and float64 are exact."""
_NEW_CALENDAR = -141_427
"""1582-10-15, as days since 1970."""
_FEW = 4
"""If at most one in this number of all partitions is selected, statistics are looked up partition by partition."""


def _projection(data_type: pa.DataType) -> dict[str, Projection]:
    """Return the fields of the statistics to decode for a column of a type."""
    members = members_of_type(data_type)
    return {COLUMN_STATS_PAYLOAD: {**dict.fromkeys(_FIELDS), "minValue": members, "maxValue": members}}


def is_ordered_type(data_type: pa.DataType) -> bool:
    """Return True if statistics of columns of a type can be used for comparisons."""
    return bool(
        pa.types.is_boolean(data_type)
        or pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_string(data_type)
        or pa.types.is_binary(data_type)
        or pa.types.is_decimal(data_type)
        or pa.types.is_date32(data_type)
        or pa.types.is_timestamp(data_type)
    )


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column in a partition of the metadata table, one row per file: keys, file names, and the
    remaining payload."""

    keys: pa.StringArray
    names: pa.StringArray
    payload: pa.StructArray
    counts_rows: bool

    @classmethod
    def load(
        cls,
        table: MetadataTable,
        column: str,
        data_type: pa.DataType,
        *,
        partitions: Sequence[str],
        known_partitions: int,
        index: str = COLUMN_STATS,
    ) -> ColumnStatistics:
        """Load those of the files in some partitions, and possibly of others; ``known_partitions`` is the number of the
        table's partitions."""
        column_id = metadata_keys.column_ids([column])[0].as_py()
        prefixes = [column_id]
        if len(partitions) * _FEW <= known_partitions:
            prefixes = [column_id + text for text in metadata_keys.partition_ids(partitions).to_pylist()]
        stats = table.prefixes(index, prefixes, _projection(data_type)).combine_chunks()
        payload = (
            stats[COLUMN_STATS_PAYLOAD].chunk(0) if stats.num_rows else pa.array([], stats[COLUMN_STATS_PAYLOAD].type)
        )
        key = stats[KEY].chunk(0) if stats.num_rows else pa.array([], pa.string())
        return cls(key, payload.field("fileName"), _without_names(payload), index == COLUMN_STATS)

    def bounds(self, data_type: pa.DataType) -> Bounds:
        """Return the bounds of a column of that type, in the order of the keys."""
        return _bounds(self.payload, data_type, counts_rows=self.counts_rows)

    def indices_of_files(
        self, names: pa.StringArray, rows: npt.NDArray[np.int64], partitions: pa.StringArray
    ) -> pa.Array:
        """Return the rows of the statistics of files, by their names and the rows of their ``partitions``; null without
        statistics."""
        at = pc.index_in(names, value_set=self.names)
        hit = np.bincount(at.drop_null().to_numpy(), minlength=len(self.names))
        ids = metadata_keys.partition_ids(partitions)
        # For duplicate names only the first position is found.
        if bool(hit.all()) or pc.count_distinct(self.names).as_py() == len(self.names):
            positions = pc.fill_null(at, 0).to_numpy()
            same = (
                _is_of_partition(ids, rows, self.keys, positions) if len(self.keys) else np.zeros(len(names), np.bool_)
            )
            return pc.if_else(pc.and_(pa.array(same), at.is_valid()), at, pa.scalar(None, at.type))
        # Files of the same name in several partitions.
        full = pc.binary_join_element_wise(ids.take(pa.array(rows)), names, "/")
        partition_ids = pc.utf8_slice_codeunits(self.keys, metadata_keys.SHORT_ID, 2 * metadata_keys.SHORT_ID)
        return pc.index_in(full, value_set=pc.binary_join_element_wise(partition_ids, self.names, "/"))


def file_bounds(
    table: MetadataTable,
    column: pa.Field,
    files: pa.Table,
    *,
    partitions: Sequence[str],
    known_partitions: int,
    index: str = COLUMN_STATS,
) -> tuple[Bounds, Mask]:
    """Return the bounds of a column in each file, and a mask of the files with statistics.

    ``files`` has the columns ``partition`` and ``name``; ``partitions`` are those it has, ``known_partitions`` is the
    number of the table's partitions; ``index`` is the partition of the metadata table with the statistics.
    """
    statistics = ColumnStatistics.load(
        table, column.name, column.type, partitions=partitions, known_partitions=known_partitions, index=index
    )
    paths = pa.array(partitions, pa.string())
    rows = pc.index_in(files["partition"].combine_chunks(), value_set=paths).to_numpy()
    at = statistics.indices_of_files(files["name"].combine_chunks(), rows, paths)
    some = ColumnStatistics(statistics.keys, statistics.names, statistics.payload.take(at), statistics.counts_rows)
    return some.bounds(column.type), at.is_valid().to_numpy(zero_copy_only=False)


def partition_bounds(
    table: MetadataTable, column: str, data_type: pa.DataType, partitions: pa.Array, index: str = PARTITION_STATS
) -> Bounds:
    """Return the bounds of a column in each partition, given by path; unknown without statistics. ``index`` is the
    partition of the metadata table with the statistics."""
    make = metadata_keys.partition_stats_keys if index == PARTITION_STATS else metadata_keys.expression_partition_keys
    record_keys = make(pa.array([column] * len(partitions), pa.string()), partitions)
    stats = table.lookup(index, record_keys, _projection(data_type))
    if not stats.num_rows:
        return _nothing(data_type, len(partitions))
    stats = stats.combine_chunks()
    at = pc.index_in(record_keys, value_set=stats[KEY].chunk(0))
    return _bounds(stats[COLUMN_STATS_PAYLOAD].chunk(0).take(at), data_type, counts_rows=index == PARTITION_STATS)


def _without_names(payload: pa.StructArray) -> pa.StructArray:
    """Return statistics without the names of their files, which take most of the memory."""
    fields = [field for field in payload.type if field.name != "fileName"]
    return pa.StructArray.from_arrays(
        [payload.field(field.name) for field in fields],
        fields=fields,
        mask=payload.is_null() if payload.null_count else None,
    )


def _is_of_partition(
    ids: pa.StringArray, rows: npt.NDArray[np.int64], key: pa.StringArray, places: npt.NDArray[Any]
) -> Mask:
    """Return a mask of the rows whose ids are those of the partitions in the keys at the given positions."""
    key_words = _words(key, metadata_keys.SHORT_ID, 2 * metadata_keys.SHORT_ID + metadata_keys.FILE_ID)
    if key_words is None:
        parts = pc.utf8_slice_codeunits(key, metadata_keys.SHORT_ID, 2 * metadata_keys.SHORT_ID)
        return numpy_mask(pc.equal(ids.take(pa.array(rows)), parts.take(pa.array(places))))
    id_words = _words(ids, 0, metadata_keys.SHORT_ID)
    assert id_words is not None
    same: Mask = (id_words[rows] == key_words[places]).all(axis=1)
    return same


def _words(texts: pa.StringArray, start: int, size: int) -> npt.NDArray[np.uint32] | None:
    """Return the characters of a short id from ``start`` on, as numbers, in texts that all have the length ``size``;
    None for others."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)
    if not bool((np.diff(offsets) == size).all()):
        return None
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]].reshape(-1, size)
    return np.ascontiguousarray(data[:, start : start + metadata_keys.SHORT_ID]).view(np.uint32)


def _bounds(stats: pa.StructArray, data_type: pa.DataType, *, counts_rows: bool) -> Bounds:
    """Return the bounds of statistics, unknown for null. ``counts_rows``: nulls are counted among the values, unlike in
    expression indexes."""
    types = stats.field("valueType") if stats.type.get_field_index("valueType") >= 0 else None
    has_statistics = stats.is_valid().to_numpy(zero_copy_only=False)
    minimum, low_known = unwrap(stats.field("minValue"), data_type, types)
    maximum, high_known = unwrap(stats.field("maxValue"), data_type, types)
    if pa.types.is_float64(data_type):
        minimum = pc.min_element_wise(minimum, _by_text(minimum), skip_nulls=False)
        maximum = pc.max_element_wise(maximum, _by_text(maximum), skip_nulls=False)
    if pa.types.is_date(data_type):
        minimum = _before_new_calendar(minimum)
    bounded = has_statistics & numpy_mask(minimum.is_valid()) & numpy_mask(maximum.is_valid()) & low_known & high_known
    if pa.types.is_floating(data_type):
        bounded &= ~(numpy_mask(pc.is_nan(minimum)) | numpy_mask(pc.is_nan(maximum)))
    bounded &= ~numpy_mask(pc.greater(minimum, maximum))
    rows, nulls = stats.field("valueCount"), stats.field("nullCount")
    rows = rows if counts_rows else pc.add(rows, nulls)
    counted = has_statistics & numpy_mask(pc.greater(rows, 0)) & numpy_mask(pc.greater_equal(nulls, 0))
    empty = has_statistics & low_known & high_known & ~numpy_mask(minimum.is_valid()) & ~numpy_mask(maximum.is_valid())
    # No bounds and not only nulls: a file without statistics.
    only_nulls = empty & counted & numpy_mask(pc.equal(rows, nulls))
    no_nulls = bounded & counted & numpy_mask(pc.equal(nulls, 0))
    if counts_rows:
        if _may_lack_statistics(data_type):
            only_nulls = np.zeros(len(stats), np.bool_)
        bounded &= ~_may_be_of_some_row_groups(minimum, maximum, nulls)
    mask = pa.array(bounded)
    none = pa.scalar(None, data_type)
    return Bounds(pc.if_else(mask, minimum, none), pc.if_else(mask, maximum, none), only_nulls, no_nulls)


def _may_lack_statistics(data_type: pa.DataType) -> bool:
    """Return whether a base file may have no statistics of a column of this type, although it has values: of texts and
    binary values that are longer than 4 KB together, and of 96-bit timestamps. Apache Hudi counts them as nulls."""
    return bool(pa.types.is_string(data_type) or pa.types.is_binary(data_type) or pa.types.is_timestamp(data_type))


def _may_be_of_some_row_groups(minimum: pa.Array, maximum: pa.Array, nulls: pa.Array) -> Mask:
    """Return a mask of the bounds that may leave out row groups without statistics, as Apache Hudi merges those of all
    row groups: it takes 0.0 for both bounds of one with NaN, and counts long texts as nulls."""
    if pa.types.is_floating(minimum.type):
        zero = pa.scalar(0, minimum.type)
        return numpy_mask(pc.less_equal(minimum, zero)) & numpy_mask(pc.greater_equal(maximum, zero))
    if pa.types.is_string(minimum.type) or pa.types.is_binary(minimum.type):
        return ~numpy_mask(pc.equal(nulls, 0))
    return np.zeros(len(minimum), np.bool_)


def _before_new_calendar(minimum: pa.Array) -> pa.Array:
    """Return lower bounds also of 1582-10-05 to 1582-10-14, which Apache Hudi records as ten days later, because Java's
    older calendar lacks them."""
    days = minimum.cast(pa.int32())
    later = pc.and_(pc.greater_equal(days, _NEW_CALENDAR), pc.less(days, _NEW_CALENDAR + 10))
    return pc.if_else(later, pc.subtract(days, pa.scalar(10, pa.int32())), days).cast(minimum.type)


def _by_text(values: pa.DoubleArray) -> pa.DoubleArray:
    """Convert float32 values, given bit by bit, to the values that readers return; others are unchanged.

    Statistics of a widened column may have either form, which is not recorded.
    """
    short = values.cast(pa.float32(), safe=False)
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), _SHORT_WHOLE))
    maybe = pc.fill_null(pc.and_not(pc.equal(short.cast(pa.float64()), values), whole), False)
    if not pc.any(maybe).as_py():
        return values
    return pc.replace_with_mask(values, maybe, convert(short.filter(maybe), pa.float64()))


def _nothing(data_type: pa.DataType, count: int) -> Bounds:
    none = np.zeros(count, np.bool_)
    return Bounds(pa.nulls(count, data_type), pa.nulls(count, data_type), none, none)
