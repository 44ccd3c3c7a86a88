"""Bounds of columns: what the footer tells, and what the rows tell, are the same."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.format.base_file import parquet
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.column_bounds import BoundsRecorder, flat_schema, unknown_columns
from pyhudi.format.base_file.orc import OrcFileWriter
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.metadata.writer.file_statistics import read_file_bounds
from pyhudi.storage import open_storage

NAN = float("nan")
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "small": (pa.int32(), [3, None, -7]),
    "long": (pa.int64(), [1 << 40, 2, 3]),
    "real": (pa.float32(), [1.5, NAN, None]),
    "nans": (pa.float64(), [NAN, NAN, None]),
    "number": (pa.float64(), [-0.5, 2.0, None]),
    "text": (pa.string(), ["b", "é", None]),
    "bytes": (pa.binary(), [b"\xff", b"", None]),
    "money": (pa.decimal128(20, 4), [decimal.Decimal("0.1234"), decimal.Decimal("-5"), None]),
    "day": (pa.date32(), [dt.date(2024, 2, 29), dt.date(1960, 1, 1), None]),
    "at": (pa.timestamp("us", "UTC"), [1, -5, None]),
    "local": (pa.timestamp("us"), [1, -5, None]),
    "nothing": (pa.int64(), [None, None, None]),
    "st": (pa.struct([("x", pa.int64()), ("y", pa.string())]), [{"x": 4, "y": None}, None, {"x": 9, "y": "q"}]),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
WANTED = flat_schema(TABLE.schema, [*(name for name in COLUMNS if name != "st"), "st.x", "st.y", "absent"])
EXPECTED: dict[str, tuple[Any, Any, int]] = {
    "flag": (False, True, 1),
    "small": (-7, 3, 1),
    "long": (2, 1 << 40, 0),
    "real": (1.5, NAN, 1),
    "nans": (NAN, NAN, 1),
    "number": (-0.5, 2.0, 1),
    "text": ("b", "é", 1),
    "bytes": (b"", b"\xff", 1),
    "money": (decimal.Decimal("-5"), decimal.Decimal("0.1234"), 1),
    "day": (dt.date(1960, 1, 1), dt.date(2024, 2, 29), 1),
    "nothing": (None, None, 3),
    "st.x": (4, 9, 1),
    "st.y": ("q", "q", 2),
}


def check(bounds: pa.StructArray, expected: dict[str, tuple[Any, Any, int]] = EXPECTED) -> None:
    assert not unknown_columns(bounds)
    found = bounds[0].as_py()
    for name, (low, high, nulls) in expected.items():
        column = found[name]
        assert same(column["min"], low), name
        assert same(column["max"], high), name
        assert (column["nulls"], column["values"]) == (nulls, 3), name


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    return bool(found == expected)


def test_rows() -> None:
    assert WANTED.names == [*(name for name in COLUMNS if name != "st"), "st.x", "st.y"]
    recorder = BoundsRecorder(WANTED)
    for batch in TABLE.to_batches(max_chunksize=2):
        recorder.add(batch)
    check(recorder.finish())


@pytest.mark.parametrize("block_size", [1, 1 << 20])
def test_footer(tmp_path: Path, block_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.parquet"
    from pyhudi.format.base_file.parquet_writer import ParquetOptions

    options = ParquetOptions(block_size=block_size)
    with ParquetFileWriter(path, BaseFileSchema(TABLE.schema, bounds=WANTED), options=options) as writer:
        for batch in TABLE.to_batches(max_chunksize=2):
            writer.write(batch)
        summary = writer.close()
    assert summary.bounds is not None
    check(summary.bounds)
    assert summary.bounds[0].as_py()["long"]["size"] > 0
    # which columns have NaN is noted: only of those are rows read
    with monkeypatch.context() as patch:
        read = parquet.read_batches
        patch.setattr(
            parquet, "read_batches", lambda file, columns, **more: asked.append(columns) or read(file, columns, **more)
        )
        asked: list[Any] = []
        check(read_file_bounds(open_storage(tmp_path), "f.parquet", WANTED))
    assert asked == [["real", "nans"]]
    # a file of another writer: what the footer does not tell is found from the rows
    pq.write_table(TABLE, path)
    check(read_file_bounds(open_storage(tmp_path), "f.parquet", WANTED))


def test_orc(tmp_path: Path) -> None:
    names = [name for name in WANTED.names if "." not in name]
    table, wanted = TABLE.select(names), pa.schema([WANTED.field(name) for name in names])
    with OrcFileWriter(tmp_path / "f.orc", BaseFileSchema(table.schema, bounds=wanted)) as writer:
        writer.write(table)
        summary = writer.close()
    assert summary.bounds is not None
    expected = {name: found for name, found in EXPECTED.items() if name in names}
    check(summary.bounds, expected)
    check(read_file_bounds(open_storage(tmp_path), "f.orc", wanted), expected)


def test_long_texts_are_not_in_the_footer(tmp_path: Path) -> None:
    table = pa.table({"t": ["a", "b" * 5000]})
    with ParquetFileWriter(tmp_path / "f.parquet", BaseFileSchema(table.schema, bounds=table.schema)) as writer:
        writer.write(table)
        summary = writer.close()
    assert summary.bounds is not None
    assert unknown_columns(summary.bounds) == ["t"]
    found = read_file_bounds(open_storage(tmp_path), "f.parquet", table.schema)[0].as_py()["t"]
    assert (found["min"], found["max"]) == ("a", "b" * 5000)


def test_columns_that_a_file_does_not_have_are_null(tmp_path: Path) -> None:
    table = pa.table({"t": ["a", "b"]})
    with ParquetFileWriter(tmp_path / "f.parquet", BaseFileSchema(table.schema)) as writer:
        writer.write(table)
    wanted = pa.schema([("t", pa.string()), ("new", pa.int32())])
    found = read_file_bounds(open_storage(tmp_path), "f.parquet", wanted)[0].as_py()["new"]
    assert (found["min"], found["nulls"], found["values"]) == (None, 2, 2)


def test_constants_and_dictionaries() -> None:
    wanted = pa.schema([("c", pa.string()), ("d", pa.string())])
    recorder = BoundsRecorder(wanted, {"c": "x"})
    rows = pa.table({"d": pa.array(["p", None, "a"]).dictionary_encode()})
    recorder.add(rows)
    found = recorder.finish()[0].as_py()
    assert (found["c"]["min"], found["c"]["max"], found["c"]["values"]) == ("x", "x", 3)
    assert (found["d"]["min"], found["d"]["max"], found["d"]["nulls"]) == ("a", "p", 1)
    empty = BoundsRecorder(wanted, {"c": "x"}).finish()[0].as_py()
    assert (empty["c"]["min"], empty["d"]["min"], empty["d"]["values"]) == (None, None, 0)


NUMBERS = {
    "int": ([5, 60, None, 100], pa.int32(), "100", "60"),
    "float": ([5.0, 60.0, None, 1e10], pa.float64(), "1.0E10", "60.0"),
    "decimal": ([decimal.Decimal("5.5"), None, decimal.Decimal("10.0")], pa.decimal128(5, 1), "10.0", "5.5"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_have_become_texts_are_in_the_order_of_texts(name: str, tmp_path: Path) -> None:
    values, kind, low, high = NUMBERS[name]
    inside = pa.array([{"y": value} for value in values], pa.struct([("y", kind)]))
    table = pa.table({"v": pa.array(values, kind), "x": inside})
    with ParquetFileWriter(tmp_path / "f.parquet", BaseFileSchema(table.schema)) as writer:
        writer.write(table)
    wanted = pa.schema([("v", pa.string()), ("x.y", pa.string())])
    bounds = read_file_bounds(open_storage(tmp_path), "f.parquet", wanted)
    found = bounds[0].as_py()["v"]
    assert (found["min"], found["max"], found["nulls"], found["values"]) == (low, high, 1, len(values))
    assert unknown_columns(bounds) == ["x.y"]


def test_short_floats_that_have_become_wider(tmp_path: Path) -> None:
    """Their shortest texts are what readers see, whether the footer tells the bounds or the rows do."""
    short = pa.array([0.1, None, 2.675, 16777216.0], pa.float32())
    rows = pa.table({"v": short, "x": pa.StructArray.from_arrays([short], names=["y"])})
    for kind, low in ((pa.float64(), 0.1), (pa.decimal128(10, 2), decimal.Decimal("0.10"))):
        wanted = pa.schema([("v", kind), ("x.y", kind)])
        recorder = BoundsRecorder(wanted)
        recorder.add(rows)
        with ParquetFileWriter(tmp_path / "f.parquet", BaseFileSchema(rows.schema)) as writer:
            writer.write(rows)
        for found in (recorder.finish(), read_file_bounds(open_storage(tmp_path), "f.parquet", wanted)):
            for name in wanted.names:
                ends = found[0].as_py()[name]
                assert (ends["min"], ends["max"], ends["nulls"]) == (low, 16777216, 1), (kind, name)
    middle = pa.table({"v": short.slice(2, 1)})
    recorder = BoundsRecorder(pa.schema([("v", pa.decimal128(10, 2))]))
    recorder.add(middle)
    assert recorder.finish()[0].as_py()["v"]["min"] == decimal.Decimal("2.68"), "rounded as readers round it"


def test_a_note_on_nan_counts_only_in_files_of_its_writer(tmp_path: Path) -> None:
    """Who rewrites a file may take its footer entries along."""
    table = pa.table({"v": [1.0, NAN]})
    pq.write_table(table.replace_schema_metadata({parquet.NAN_KEY: "[]"}), tmp_path / "f.parquet")
    data = (tmp_path / "f.parquet").read_bytes()
    assert data.count(b"parquet-cpp") == 1
    (tmp_path / "f.parquet").write_bytes(data.replace(b"parquet-cpp", b"parquet-xyz"))
    found = read_file_bounds(open_storage(tmp_path), "f.parquet", table.schema)[0].as_py()["v"]
    assert found["min"] == 1.0
    assert math.isnan(found["max"])
