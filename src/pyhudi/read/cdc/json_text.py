"""Arrow values as JSON text, column by column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.schema.table_types import is_list

_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    **{chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in "\n\r\t"},
}
_SPECIAL = r'[\x00-\x1f"\\]'
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


def json_objects(rows: pa.StructArray) -> pa.Array:
    """Return each row as a JSON object of all its fields; null for null rows.

    Dates are numbers of days and times numbers of microseconds, as in Apache Hudi; decimals are numbers, binary values
    base64 text.
    """
    empty = pa.repeat(pa.scalar("{}"), len(rows))
    if not rows.type.num_fields:
        return _with_nulls(empty, rows)
    parts = []
    for i, child in enumerate(rows.flatten()):
        name = json_texts(pa.array([rows.type.field(i).name]))[0].as_py()
        lead = ("{" if i == 0 else ",") + name + ":"
        parts += [pa.scalar(lead), pc.fill_null(json_texts(child), "null")]
    texts = pc.binary_join_element_wise(*parts, pa.scalar("}"), "")
    return _with_nulls(texts, rows)


def json_texts(values: pa.Array) -> pa.Array:
    """Return each value as JSON; null for null."""
    data_type = values.type
    if pa.types.is_dictionary(data_type):
        return json_texts(values.dictionary_decode())
    if pa.types.is_struct(data_type):
        return json_objects(values)
    if pa.types.is_map(data_type):
        return _map(values)
    if is_list(data_type):
        return _join_lists(json_texts(values.flatten()), values, "[", "]")
    if pa.types.is_floating(data_type):
        return _floats(values)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return _quoted(_escaped(values.cast(pa.string())))
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return _quoted(_base64(values.cast(pa.binary())))
    if pa.types.is_timestamp(data_type):
        values = values.cast(pa.timestamp("us", data_type.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date32(data_type):
        values = values.cast(pa.int32())
    elif pa.types.is_time(data_type):
        values = values.cast(pa.int32() if pa.types.is_time32(data_type) else pa.int64())
    return values.cast(pa.string())


def _floats(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    whole = pc.invert(pc.match_substring_regex(texts, "[.en]"))
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    negative = pc.less(values, 0.0)
    infinite = pc.if_else(negative, '"-Infinity"', '"Infinity"')
    return pc.if_else(pc.is_nan(values), '"NaN"', pc.if_else(pc.is_inf(values), infinite, texts))


def _escaped(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        return texts
    for char, escape in _ESCAPES.items():
        texts = pc.replace_substring(texts, char, escape)
    return texts


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _map(values: pa.MapArray) -> pa.Array:
    data_type = values.type
    entries = values.cast(pa.list_(pa.struct([("key", data_type.key_type), ("value", data_type.item_type)])))
    keys, items = entries.flatten().flatten()
    names = json_texts(keys.cast(pa.string()))
    pairs = pc.binary_join_element_wise(names, pc.fill_null(json_texts(items), "null"), ":")
    return _join_lists(pairs, entries, "{", "}")


def _join_lists(texts: pa.Array, lists: pa.Array, start: str, end: str) -> pa.Array:
    """Return the joined texts of the values of each list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    inside = pc.binary_join(pa.ListArray.from_arrays(offsets, pc.fill_null(texts, "null")), ",")
    return _with_nulls(pc.binary_join_element_wise(start, inside, end, ""), lists)


def _with_nulls(texts: pa.Array, like: pa.Array) -> pa.Array:
    return texts if not like.null_count else pc.if_else(like.is_valid(), texts, pa.scalar(None, pa.string()))


def _base64(values: pa.Array) -> pa.Array:
    """Return values as base64 texts: each is arranged in groups of three bytes, which are four characters."""
    filled = pc.fill_null(values, b"")
    bounds = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled) + 1]
    lengths = np.diff(bounds).astype(np.int64)
    data = np.frombuffer(filled.buffers()[2] or b"", np.uint8)[bounds[0] : bounds[-1]]
    groups = (lengths + 2) // 3
    ends = np.cumsum(groups)
    padded = np.zeros(int(groups.sum()) * 3, np.uint8)
    shift = (ends - groups) * 3 - (np.cumsum(lengths) - lengths)
    padded[np.arange(len(data)) + np.repeat(shift, lengths)] = data
    a, b, c = padded.reshape(-1, 3).T.astype(np.int64)
    sixes = np.stack([a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63], axis=1).reshape(-1)
    chars = _BASE64[sixes]
    chars[ends[lengths % 3 > 0] * 4 - 1] = ord("=")
    chars[ends[lengths % 3 == 1] * 4 - 2] = ord("=")
    offsets = np.append(0, ends * 4).astype(np.int32)
    texts = pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(chars.tobytes()))
    return _with_nulls(texts, values)
