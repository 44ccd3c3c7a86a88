"""Rows as JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from pyhudi.report import write_csv, write_json_lines

MOMENT = datetime(2026, 11, 21, 9, 49, 47, 775000)
ROWS = pa.table(
    {
        "text": ['a "b"\n,', None, ""],
        "int": [1, None, -3],
        "float": [1.5, float("nan"), None],
        "bool": [True, False, None],
        "day": [date(2026, 11, 21), None, date(1969, 12, 31)],
        "time": pa.array([time(1, 2, 3), None, None], pa.time64("us")),
        "moment": pa.array([MOMENT, None, None], pa.timestamp("us")),
        "utc": pa.array([MOMENT.replace(tzinfo=UTC), None, None], pa.timestamp("ms", "UTC")),
        "decimal": pa.array([Decimal("12.30"), None, Decimal("0.00")], pa.decimal128(10, 2)),
        "bytes": [b"\x00\x01\x02", None, b""],
        "list": pa.array([[date(2026, 1, 1), None], None, []], pa.list_(pa.date32())),
        "fixed": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "struct": pa.array([{"x": 1, "at": MOMENT}, None, {"x": None, "at": None}]),
        "map": pa.array([[("k", MOMENT)], None, []], pa.map_(pa.string(), pa.timestamp("us"))),
        "dictionary": pa.array(["one", None, "two"]).dictionary_encode(),
        "nothing": pa.nulls(3),
    }
)


def as_json(table: pa.Table, rows: int = 100) -> list[object]:
    out = io.BytesIO()
    write_json_lines(table.to_batches(rows), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_json(rows: int) -> None:
    first, second, third = as_json(ROWS, rows)
    assert first == {
        "text": 'a "b"\n,',
        "int": 1,
        "float": 1.5,
        "bool": True,
        "day": "2026-11-21",
        "time": "01:02:03.000000",
        "moment": "2026-11-21 09:49:47.775000",
        "utc": "2026-11-21 09:49:47.775Z",
        "decimal": 12.3,
        "bytes": "AAEC",
        "list": ["2026-01-01", None],
        "fixed": [1.0, 2.0],
        "struct": {"x": 1, "at": "2026-11-21 09:49:47.775000"},
        "map": {"k": "2026-11-21 09:49:47.775000"},
        "dictionary": "one",
        "nothing": None,
    }
    assert second == dict.fromkeys(ROWS.column_names) | {"float": "NaN", "bool": False}
    assert third["day"] == "1969-12-31"
    assert third["list"] == []


@pytest.mark.parametrize("rows", [1, 3])
def test_csv(rows: int) -> None:
    out = io.BytesIO()
    write_csv(ROWS.to_batches(rows), ROWS.schema, out)
    first, second, third = csv.DictReader(io.StringIO(out.getvalue().decode()))
    assert first["text"] == 'a "b"\n,'
    assert (first["int"], first["decimal"], first["bytes"]) == ("1", "12.30", "AAEC")
    assert first["moment"] == "2026-11-21 09:49:47.775000"
    assert json.loads(first["struct"]) == {"x": 1, "at": "2026-11-21 09:49:47.775000"}
    assert json.loads(first["list"]) == ["2026-01-01", None]
    assert (second["text"], second["list"]) == ("", "")
    assert (third["text"], third["dictionary"]) == ("", "two")
    assert out.getvalue().splitlines()[-1].startswith(b'"",-3,')


def test_no_rows() -> None:
    assert as_json(ROWS.slice(0, 0)) == []
    out = io.BytesIO()
    write_csv([], ROWS.schema.empty_table().select(["text", "int"]).schema, out)
    assert out.getvalue() == b'"text","int"\n'


def test_rows_without_columns() -> None:
    assert as_json(pa.table({"a": [1, 2]}).select([])) in ([{}, {}], [])


def test_sliced_batches() -> None:
    sliced = ROWS.slice(2)
    assert as_json(sliced) == as_json(ROWS)[2:]
