"""Write stats as the JSON text of commits in layout 1, created by columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.timeline.encoding.jackson_json import JsonText, pretty, quote
from pyhudi.timeline.encoding.write_stats_by_partition import group_by_partition

_DEPTH = 2
"""Nesting depth of a stat in the text of a commit: below the commit and its partitions."""
_ODD = r"[^ !#-\[\]-~]"
"""Characters that JSON escapes, or that may take more than a byte."""
_NO_RECORDS_STATS = pretty({"val": None}, _DEPTH + 1)


def stats_by_partition(stats: pa.Table, fields: Sequence[str], log_fields: Sequence[str]) -> dict[str, JsonText]:
    """Return the arrays of stats by partition path, with partitions in order of first occurrence.

    Args:
        stats: Write stats (`pyhudi.timeline.commit_metadata.WRITE_STAT_SCHEMA`).
        fields: Columns that every stat has, in order.
        log_fields: Further columns of stats of log files, which have ``logVersion``.
    """
    if not stats.num_rows:
        return {}
    grouped = group_by_partition(stats)
    texts = _objects(grouped.stats, fields, log_fields)
    joined = pc.binary_join(pa.ListArray.from_arrays(grouped.offsets, texts), ", ").to_pylist()
    partitions = grouped.partitions.to_pylist()
    return {p: JsonText(f"[ {text} ]") for p, text in zip(partitions, joined, strict=True)}


def _objects(stats: pa.Table, fields: Sequence[str], log_fields: Sequence[str]) -> pa.Array:
    pad, end = "  " * (_DEPTH + 1), "\n" + "  " * _DEPTH + "}"
    parts: list[pa.Array | str] = []
    for name in fields:
        parts += [f"{',' if parts else '{'}\n{pad}{quote(name)} : ", _values(contiguous(stats[name]))]
    is_log = contiguous(pc.is_valid(stats["logVersion"]))
    if pc.any(is_log).as_py():
        more: list[pa.Array | str] = []
        for name in log_fields:
            more += [f",\n{pad}{quote(name)} : ", _values(contiguous(stats[name]))]
        more.append(f',\n{pad}"recordsStats" : {_NO_RECORDS_STATS}')
        parts.append(pc.if_else(is_log, _concatenate(more), ""))
    return _concatenate([*parts, end])


def _values(column: pa.Array) -> pa.Array:
    """Return the values of a column as JSON."""
    if column.null_count == len(column):
        return pa.repeat(pa.scalar("null"), len(column))
    data_type = column.type
    if pa.types.is_integer(data_type):
        texts = column.cast(pa.string())
    elif pa.types.is_string(data_type):
        texts = _quoted(column)
    elif pa.types.is_list(data_type):
        texts = _lists(column)
    elif pa.types.is_struct(data_type):
        texts = _structs(column)
    else:  # Change data, which few commits have.
        texts = pa.array([None if v is None else pretty(dict(v), _DEPTH + 1) for v in column.to_pylist()], pa.string())
    return pc.fill_null(texts, "null")


def _quoted(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, _ODD)).as_py():
        return pa.array([None if text is None else quote(text) for text in column.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', column, '"', "")


def _lists(column: pa.Array) -> pa.Array:
    quoted = pa.ListArray.from_arrays(column.offsets, _quoted(column.values), mask=pc.is_null(column))
    joined = pc.binary_join_element_wise("[ ", pc.binary_join(quoted, ", "), " ]", "")
    return pc.if_else(pc.equal(pc.list_value_length(column), 0), "[ ]", joined)


def _structs(column: pa.Array) -> pa.Array:
    pad, end = "  " * (_DEPTH + 2), "\n" + "  " * (_DEPTH + 1) + "}"
    parts: list[pa.Array | str] = []
    for at in range(column.type.num_fields):
        name = column.type.field(at).name
        value = pc.fill_null(pc.struct_field(column, [at]).cast(pa.string()), "null")
        parts += [f"{',' if parts else '{'}\n{pad}{quote(name)} : ", value]
    return pc.if_else(pc.is_valid(column), _concatenate([*parts, end]), pa.scalar(None, pa.string()))


def _concatenate(parts: Sequence[pa.Array | str]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
