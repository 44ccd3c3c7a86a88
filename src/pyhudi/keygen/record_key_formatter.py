"""Record keys of Arrow rows, as in ``_hoodie_record_key``, for tables that do not store it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.keygen.key_spec import EMPTY_KEY_PART, NULL_KEY_PART, KeySpec
from pyhudi.schema.type_conversion import date_text, java_text

_DIGITS = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], dtype=np.uint8)


def record_keys(rows: pa.RecordBatch, spec: KeySpec) -> pa.StringArray:
    """Return the record keys of rows that have the key fields.

    Raises:
        RecordKeyError: A key field is missing, or has an unsupported type.
        UnsupportedTableError: Keys are generated, made by a generator of the user, or contain timestamps in the
            writer's time zone.
    """
    if spec.auto_keys:
        raise UnsupportedTableError(
            "the table generates its record keys and does not store them, so its rows have none"
        )
    _check_not_custom(spec)
    return _join_key_parts([field_texts(rows, name, spec) for name in spec.record_fields], spec)


def new_record_keys(rows: pa.RecordBatch, spec: KeySpec) -> pa.StringArray:
    """Return the record keys of rows that are to be written.

    Raises:
        RecordKeyError: As `record_keys`, or the key of a row is null or empty (in all its parts), or a number whose
            text may differ on Spark (`check_texts_of_floats`).
        UnsupportedTableError: As `record_keys`.
    """
    if spec.auto_keys:
        return record_keys(rows, spec)
    _check_not_custom(spec)
    check_texts_of_floats(rows, spec.record_fields)
    texts = [field_texts(rows, name, spec) for name in spec.record_fields]
    if pc.any(_unset(texts)).as_py():
        raise RecordKeyError(f"{spec.unset_key_message}; nothing was committed")
    return _join_key_parts(texts, spec)


def without_keys(rows: pa.RecordBatch, spec: KeySpec) -> int:
    """Return the number of rows whose record key is null or empty, in all its parts. Errors are those of
    `record_keys`."""
    return int(pc.sum(_unset([field_texts(rows, name, spec) for name in spec.record_fields])).as_py() or 0)


def _unset(texts: Sequence[pa.StringArray]) -> pa.BooleanArray:
    return reduce(pc.and_, (pc.fill_null(pc.equal(text, ""), True) for text in texts))


def check_texts_of_floats(rows: pa.RecordBatch, names: Sequence[str]) -> None:
    """Check that Spark has the same texts of the floating-point numbers of some fields.

    Java before 19 formats some large or tiny numbers, and some of many digits, with more digits than they need. A key
    or a path of such a number, stored here, would not be found by writes on Spark.

    Raises:
        RecordKeyError: A field is missing, or a number may have another text.
    """
    for name in names:
        column = _field(rows, name)
        if not pa.types.is_floating(column.type):
            continue
        max_digits, whole = (6, 2.0**24) if pa.types.is_float32(column.type) else (15, 2.0**53)
        size = pc.abs(column)
        digits = pc.replace_substring_regex(size.cast(pa.string()), r"e.*$|\.", "")
        is_short = pc.less_equal(pc.utf8_length(pc.utf8_trim(digits, "0")), max_digits)
        is_usual = pc.and_(pc.and_(pc.greater_equal(size, 0.001), pc.less(size, whole)), is_short)
        is_same = pc.or_(is_usual, pc.or_(pc.equal(size, 0.0), pc.invert(pc.is_finite(size))))
        unsure = column.filter(pc.invert(is_same))
        if len(unsure):
            raise RecordKeyError(
                f"the number {unsure[0].as_py()!r} of the field {name!r} is formatted differently by some releases of "
                "Java, so that writes on Spark might not find its record; use a decimal or a text as the field, or "
                "write the rows on Spark with pyhudi.activate (a bootstrap: with FullRecordBootstrapModeSelector)"
            )


def generated_keys(instant: str, task: int, first: int, count: int) -> pa.StringArray:
    """Return keys of rows of a table that generates them: ``<instant>_<task partition>_<row number in the task>``."""
    numbers = pa.array(np.arange(first, first + count)).cast(pa.string())
    return pc.binary_join_element_wise(f"{instant}_{task}_", numbers, "")


def _check_not_custom(spec: KeySpec) -> None:
    if spec.key_class is not None:
        raise UnsupportedTableError(f"the record keys that {spec.key_class} makes require Spark")


def _join_key_parts(texts: list[pa.StringArray], spec: KeySpec) -> pa.StringArray:
    if not spec.named_parts:
        return texts[0]
    parts: list[pa.Array | str] = []
    for i, (name, text) in enumerate(zip(spec.record_fields, texts, strict=True)):
        shown = pc.if_else(pc.equal(text, ""), EMPTY_KEY_PART, text)
        parts += [f"{',' if i else ''}{name}:", pc.fill_null(shown, NULL_KEY_PART)]
    return pc.binary_join_element_wise(*parts, "")


def field_texts(rows: pa.RecordBatch, name: str, spec: KeySpec) -> pa.StringArray:
    """Return the texts of a field, as contained in keys and partition paths; null for null.

    Raises:
        RecordKeyError: The field is missing, or has an unsupported type.
        UnsupportedTableError: The text depends on the writer's time zone.
    """
    return _key_text(_field(rows, name), name, spec)


def _field(rows: pa.RecordBatch, name: str) -> pa.Array:
    if name in rows.schema.names:
        return rows.column(name)
    first, *rest = name.split(".")
    try:
        return pc.struct_field(rows.column(first), rest)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RecordKeyError(
            f"the field {name!r} of record keys or partition paths does not exist; the columns are: "
            f"{', '.join(rows.schema.names)}. Name one of them, or add the column to the rows"
        ) from error


def _key_text(column: pa.Array, name: str, spec: KeySpec) -> pa.StringArray:
    data_type = column.type
    t = pa.types
    if t.is_string(data_type):
        return column
    if t.is_integer(data_type) or t.is_boolean(data_type) or t.is_decimal(data_type):
        return column.cast(pa.string())
    if t.is_date(data_type):
        return date_text(column)
    if t.is_floating(data_type):
        return java_text(column)
    if t.is_binary(data_type):
        return _hex(column)
    if t.is_timestamp(data_type):
        if spec.consistent_timestamps and data_type.tz is not None:
            raise UnsupportedTableError(
                f"record keys contain the timestamps of {name!r} in the time zone of their writer "
                "(hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled=true), so rows "
                "cannot be found by key"
            )
        return column.cast(pa.timestamp("us", data_type.tz)).cast(pa.int64()).cast(pa.string())
    raise RecordKeyError(f"the field {name!r} has type {data_type}, which record keys do not support")


def _hex(column: pa.Array) -> pa.StringArray:
    """Return bytes as lower-case hexadecimal digits."""
    whole = pa.concat_arrays([column.cast(pa.binary())])  # Without offset in its buffers.
    valid, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[: len(whole) + 1]
    digits = _DIGITS[np.frombuffer(data, dtype=np.uint8)[: ends[-1]]] if data is not None else np.zeros(0, np.uint8)
    buffers = [valid, pa.py_buffer((ends * 2).astype(np.int32)), pa.py_buffer(np.ascontiguousarray(digits))]
    return pa.StringArray.from_buffers(len(whole), buffers[1], buffers[2], buffers[0], whole.null_count)
