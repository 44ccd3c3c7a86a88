"""Minimum and maximum of the columns of a file, for the column statistics of the metadata table.

They are taken from the Parquet footer where possible, so that values are not processed twice. NaN is detected in the
rows, because Parquet omits it and Spark considers it greater than all numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.name_resolution import field_type
from pyhudi.schema.timestamp_units import actual_type
from pyhudi.schema.type_conversion import convert

COUNTS = ("values", "nulls", "size", "plain")


def bounds_type(columns: pa.Schema) -> pa.DataType:
    """Return the type of a file's bounds: a struct with a field for each column (dotted names are leaves of structs),
    null if nothing is known about the column.

    ``min`` and ``max`` have the type of the column and are null without values. ``values`` counts rows, ``nulls`` those
    with null. ``size`` and ``plain`` are the compressed and uncompressed bytes of the column in the file (0: unknown).
    """
    return pa.struct([pa.field(field.name, _column_type(field.type)) for field in columns])


def unknown_columns(bounds: pa.StructArray) -> list[str]:
    """Return the columns without known bounds in one file's bounds."""
    return [field.name for i, field in enumerate(bounds.type) if bounds.field(i).null_count]


def flat_schema(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return columns by (dotted) name with their types; columns that are not in the schema are omitted."""
    fields = []
    for name in names:
        data_type = field_type(schema, name)
        if data_type is not None:
            fields.append(pa.field(name, data_type))
    return pa.schema(fields)


class BoundsRecorder:
    """Computes the bounds of columns while the rows of a file are written.

    ``columns`` are the requested ones, with primitive types. ``constants`` are columns that are not in the rows: the
    text of every row.
    """

    def __init__(self, columns: pa.Schema, constants: Mapping[str, str | None] | None = None) -> None:
        self._columns = columns
        self._constants = constants or {}
        self._rows = 0
        self._nulls: dict[str, int] = {}
        self._spans: dict[str, list[pa.Scalar]] = {}

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add the next rows. Missing columns without a constant remain unknown."""
        if rows.num_rows == 0:
            return
        self._rows += rows.num_rows
        for field in self._columns:
            if field.name in self._constants:
                continue
            column = leaf_column(rows, field.name)
            if column is None or not _has_order_of(column.type, field.type):
                continue
            self._nulls[field.name] = self._nulls.get(field.name, 0) + column.null_count
            if column.null_count < len(column):
                self._spans.setdefault(field.name, []).extend(_span(column, field.type))

    def finish(self) -> pa.StructArray:
        """Return the bounds of all rows (one row of `bounds_type`)."""
        bounds = {field.name: self._column(field) for field in self._columns}
        return struct_of(self._columns, {name: value for name, value in bounds.items() if value is not None})

    def _column(self, field: pa.Field) -> dict[str, Any] | None:
        counts = {"values": self._rows, "nulls": 0, "size": 0, "plain": 0}
        if field.name in self._constants:
            value = pa.array([self._constants[field.name] if self._rows else None], field.type)
            return {"min": value, "max": value, **counts, "nulls": value.null_count * self._rows}
        if self._rows and field.name not in self._nulls:
            return None
        spans = self._spans.get(field.name)
        if not spans:
            none = pa.nulls(1, field.type)
            return {"min": none, "max": none, **counts, "nulls": self._nulls.get(field.name, 0)}
        return {**_ends(pa.array(spans, field.type)), **counts, "nulls": self._nulls[field.name]}


class NanDetector:
    """Detects NaN (``found``) and -0.0 (``zeros``) in the floating-point columns and leaves of ``schema``."""

    def __init__(self, schema: pa.Schema) -> None:
        self.columns = frozenset(float_leaves(schema))
        self.nan_columns: set[str] = set()
        self.zeros: set[str] = set()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add the next rows."""
        for name in self.columns - (self.nan_columns & self.zeros):
            column = leaf_column(rows, name)
            if column is None:
                continue
            if name not in self.nan_columns and pc.any(pc.is_nan(column)).as_py():
                self.nan_columns.add(name)
            if name not in self.zeros and pc.any(_is_negative_zero(column)).as_py():
                self.zeros.add(name)


def _is_negative_zero(column: pa.Array) -> pa.BooleanArray:
    """Return a mask of the numbers that are -0.0: only the sign bit is set."""
    width = column.type.bit_width
    return pc.equal(column.view(f"int{width}"), pa.scalar(-(2 ** (width - 1)), f"int{width}"))


def float_leaves(fields: Iterable[pa.Field], path: str = "") -> Iterator[str]:
    """Return the names of floating-point columns and leaves of nested structs (``a.b``)."""
    for field in fields:
        if pa.types.is_floating(field.type):
            yield path + field.name
        elif pa.types.is_struct(field.type):
            yield from float_leaves(field.type, f"{path}{field.name}.")


def leaf_column(rows: pa.RecordBatch | pa.Table, name: str) -> pa.Array | pa.ChunkedArray | None:
    """Return a column or a leaf of nested structs; None if the rows do not have it."""
    names = rows.schema.names
    if name in names:
        return rows.column(name)
    first, _, rest = name.partition(".")
    if not rest or first not in names or not pa.types.is_struct(rows.schema.field(first).type):
        return None
    struct = rows.column(first)
    flat = struct.combine_chunks() if isinstance(struct, pa.ChunkedArray) else struct
    return leaf_column(pa.RecordBatch.from_arrays(flat.flatten(), names=[f.name for f in flat.type]), rest)


def parquet_bounds(
    metadata: Any, columns: pa.Schema, nan: Iterable[str] = (), stored: pa.Schema | None = None
) -> pa.StructArray:
    """Return the bounds in the footer of a Parquet file (one row of `bounds_type`).

    Args:
        metadata: ``pyarrow.parquet.FileMetaData``.
        columns: Requested columns, with their types in the table. Columns that the file does not have are all null.
        nan: Floating-point columns that hold NaN.
        stored: Columns of the file, if they are known. They are then not read from ``metadata``, whose schema object
            would delay the release of its memory, including the bloom filter, until the next garbage collection.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    stored = stored if stored is not None else metadata.schema.to_arrow_schema()
    leaves = range(metadata.num_columns)
    paths = [groups[0].column(i).path_in_schema if groups else metadata.schema.column(i).path for i in leaves]
    places = dict(zip(paths, leaves, strict=True))
    nans = frozenset(nan)
    bounds: dict[str, dict[str, Any]] = {}
    for field in columns:
        place = places.get(field.name)
        if place is None:
            data_type = field_type(stored, field.name)
            if data_type is None:
                bounds[field.name] = _all_null(field.type, metadata.num_rows)
            continue
        column = _footer_column(groups, place, field, field_type(stored, field.name), has_nan=field.name in nans)
        if column is not None:
            bounds[field.name] = column
    return struct_of(columns, bounds)


def struct_of(columns: pa.Schema, bounds_by_column: Mapping[str, Mapping[str, Any]]) -> pa.StructArray:
    """Return one row of `bounds_type`; columns missing in ``bounds_by_column`` are unknown."""
    children = []
    for field in columns:
        data_type = _column_type(field.type)
        column = bounds_by_column.get(field.name)
        if column is None:
            children.append(pa.nulls(1, data_type))
            continue
        counts = [pa.array([column[name]], pa.int64()) for name in COUNTS]
        children.append(pa.StructArray.from_arrays([column["min"], column["max"], *counts], fields=list(data_type)))
    if not children:
        return pa.array([{}], pa.struct([]))
    return pa.StructArray.from_arrays(children, fields=list(bounds_type(columns)))


def _column_type(data_type: pa.DataType) -> pa.DataType:
    return pa.struct([("min", data_type), ("max", data_type), *((name, pa.int64()) for name in COUNTS)])


def _all_null(data_type: pa.DataType, rows: int) -> dict[str, Any]:
    none = pa.nulls(1, data_type)
    return {"min": none, "max": none, "values": rows, "nulls": rows, "size": 0, "plain": 0}


def _footer_column(
    groups: list[Any], place: int, field: pa.Field, stored: pa.DataType | None, *, has_nan: bool
) -> dict[str, Any] | None:
    values = nulls = size = plain = 0
    spans: list[pa.Array] = []
    floats = pa.types.is_floating(field.type)
    for group in groups:
        chunk = group.column(place)
        size += chunk.total_compressed_size
        plain += chunk.total_uncompressed_size
        values += chunk.num_values
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        nulls += statistics.null_count
        if statistics.null_count == chunk.num_values:
            continue
        if not statistics.has_min_max:
            if not (floats and has_nan):
                return None
            continue  # All values are NaN.
        ends = _footer_ends(statistics, field.type, stored)
        if ends is None:
            return None
        spans.append(ends)
    if has_nan:
        spans.append(pa.array([float("nan")], field.type))
    ends = _ends(pa.concat_arrays(spans)) if spans else dict.fromkeys(("min", "max"), pa.nulls(1, field.type))
    return {**ends, "values": values, "nulls": nulls, "size": size, "plain": plain}


def _footer_ends(statistics: Any, data_type: pa.DataType, stored: pa.DataType | None) -> pa.Array | None:
    """Return minimum and maximum of a row group in the type of the column; None if they are unknown."""
    if stored is not None and not _has_order_of(stored, data_type):
        return None
    try:
        if stored is not None and pa.types.is_temporal(stored):
            width = pa.int32() if stored.bit_width == 32 else pa.int64()
            return (
                pa.array([statistics.min_raw, statistics.max_raw], width)
                .cast(actual_type(stored, data_type))
                .cast(data_type)
            )
        ends = (
            pa.array([statistics.min, statistics.max], stored)
            if stored is not None
            else pa.array([statistics.min, statistics.max])
        )
        return convert(ends, data_type) if pa.types.is_floating(ends.type) else ends.cast(data_type)
    except (pa.ArrowException, SchemaMismatchError, ValueError, TypeError, OverflowError):
        return None


def _has_order_of(stored: pa.DataType, data_type: pa.DataType) -> bool:
    """Return True if values of the type in the file are ordered like those of the column's type: numbers are not
    ordered like their texts."""
    return _is_text_or_binary(stored) == _is_text_or_binary(data_type)


def _is_text_or_binary(data_type: pa.DataType) -> bool:
    t = pa.types
    plain = data_type.value_type if t.is_dictionary(data_type) else data_type
    binary = t.is_binary(plain) or t.is_large_binary(plain) or t.is_fixed_size_binary(plain)
    return bool(binary or t.is_string(plain) or t.is_large_string(plain))


def _ends(ends: pa.Array) -> dict[str, pa.Array]:
    """Return the overall ``min`` and ``max`` of several bounds, some of which are null, as one row."""
    bounds = _span(ends, ends.type)
    return {"min": bounds.slice(0, 1), "max": bounds.slice(1)}


def _span(column: pa.Array | pa.ChunkedArray, data_type: pa.DataType) -> pa.Array:
    """Return minimum and maximum of nullable values; NaN is the greatest, as in Spark."""
    if pa.types.is_dictionary(column.type):
        # Includes texts in the dictionary that no row uses; bounds may be wider than necessary.
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        column = pa.chunked_array([chunk.dictionary for chunk in chunks], column.type.value_type)
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    if not pa.types.is_floating(column.type):
        ends = pc.min_max(column)
        return pa.array([ends["min"], ends["max"]], column.type).cast(data_type)
    is_nan = pc.is_nan(column)
    has_nan = pc.any(is_nan).as_py()
    ends = pc.min_max(column.filter(pc.fill_null(pc.invert(is_nan), False)) if has_nan else column)
    nan = pa.scalar(float("nan"), column.type)
    ends_of_values = [ends["min"] if ends["min"].is_valid else nan, nan if has_nan else ends["max"]]
    # Widened as readers do it for 32-bit floats, not bit by bit.
    return convert(pa.array(ends_of_values, column.type), data_type)
