"""Rows as plain JSON values, so that tables of different engines can be compared with readable differences."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def encode(value: Any, kind: pa.DataType) -> Any:
    """Return one value of Arrow type ``kind`` as JSON."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        assert isinstance(value, dt.datetime)
        moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat(timespec="microseconds")
    if pa.types.is_date(kind):
        return value.isoformat()
    if pa.types.is_decimal(kind):
        return f"{value:f}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return {"base64": base64.b64encode(value).decode()}
    if pa.types.is_struct(kind):
        return {field.name: encode(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        pairs = [[encode(key, kind.key_type), encode(item, kind.item_type)] for key, item in value]
        return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [encode(item, kind.value_type) for item in value]
    if pa.types.is_floating(kind) and value != value:
        return "NaN"
    return value


def encode_table(table: pa.Table, columns: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    """Return rows of the named columns (all if None) in encoded form, sorted by their text: row order is not
    compared."""
    names = list(columns if columns is not None else table.column_names)
    kinds = [table.schema.field(name).type for name in names]
    cells = [
        [encode(value, kind) for value in table.column(name).to_pylist()]
        for name, kind in zip(names, kinds, strict=True)
    ]
    return in_order(zip(*cells, strict=True))


def in_order(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Return rows sorted by their JSON text."""
    return sorted((tuple(row) for row in rows), key=lambda row: json.dumps(row, ensure_ascii=False))


def assert_same_rows(actual: pa.Table, expected: pa.Table, columns: Sequence[str] | None = None) -> None:
    """Assert that two Arrow tables have the same rows in the named columns (all of ``expected`` if None), in any
    order."""
    names = list(columns if columns is not None else expected.column_names)
    missing = [name for name in names if name not in actual.column_names]
    assert not missing, f"columns {missing} are missing; there are {actual.column_names}"
    compare(encode_table(actual, names), encode_table(expected, names), names)


def compare(actual: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], columns: Sequence[str]) -> None:
    """Assert that sorted encoded rows are equal; the message has the first rows that are in one of them only."""
    if actual == expected:
        return
    texts = (
        [json.dumps(row, ensure_ascii=False) for row in actual],
        [json.dumps(row, ensure_ascii=False) for row in expected],
    )
    surplus, lacking = _minus(texts[0], texts[1]), _minus(texts[1], texts[0])
    raise AssertionError(
        f"{len(actual)} rows, expected {len(expected)}; columns {list(columns)}\n"
        + "".join(f"  unexpected {text}\n" for text in surplus[:5])
        + "".join(f"  missing    {text}\n" for text in lacking[:5])
    )


def _minus(some: list[str], others: list[str]) -> list[str]:
    left = list(others)
    return [text for text in some if not (text in left and left.remove(text) is None)]
