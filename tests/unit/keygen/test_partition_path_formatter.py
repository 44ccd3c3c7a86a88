"""Keys and partition paths of Arrow rows that are to be written."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest

from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, ENCODED_CHARS, KeySpec
from pyhudi.keygen.partition_path_formatter import partition_paths
from pyhudi.keygen.record_key_formatter import generated_keys, new_record_keys
from pyhudi.storage import open_storage
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, PartitionKind

ROWS = pa.RecordBatch.from_pydict(
    {
        "id": ["a", "", None, "b"],
        "n": pa.array([1, None, 3, -4], pa.int32()),
        "p": ["x/y", "", None, ENCODED_CHARS],
        "d": [dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(2024, 2, 29)],
        "s": [{"in": True}, {"in": None}, None, {"in": False}],
    }
)


def spec(*partitions: str, keys: tuple[str, ...] = ("id",), **others: bool) -> KeySpec:
    fields = tuple(PartitionField(name) for name in partitions)
    return KeySpec(KeyGenType.COMPLEX, keys, len(keys) > 1, fields, **others)


def test_levels():
    nothing = DEFAULT_PARTITION
    assert partition_paths(ROWS, spec()).to_pylist() == [""] * 4
    assert partition_paths(ROWS, spec("d")).to_pylist() == ["2024-02-29", nothing, "0001-01-01", "2024-02-29"]
    far = pa.RecordBatch.from_pydict({"d": pa.array([3_000_000], pa.date32())})
    assert partition_paths(far, spec("d")).to_pylist() == ["+10183-09-21"]  # as Java and Spark have it
    assert partition_paths(ROWS, spec("d", slash_dates=True))[0].as_py() == "2024/02/29"
    assert partition_paths(ROWS, spec("d", "s.in", hive_style=True)).to_pylist() == [
        "d=2024-02-29/s.in=true",
        f"d={nothing}/s.in={nothing}",
        f"d=0001-01-01/s.in={nothing}",
        "d=2024-02-29/s.in=false",
    ]
    encoded = partition_paths(ROWS, spec("p", url_encode=True)).to_pylist()
    assert encoded[:3] == ["x%2Fy", nothing, nothing]
    assert unquote(encoded[3]) == ENCODED_CHARS
    assert len(encoded[3]) == 3 * len(ENCODED_CHARS)


@pytest.mark.parametrize("value", ["..", ".", "a/../b", "a//b", "/a", "a/", ".hoodie", ".hoodie/x", "10:30", ":/a"])
def test_values_that_are_no_folders(value: str):
    rows = pa.RecordBatch.from_pydict({"p": ["fine", value]})
    with pytest.raises(RecordKeyError, match="is not a valid folder"):
        partition_paths(rows, spec("p"))


def test_object_stores_have_no_names_with_control_characters(tmp_path: Path):
    rows = pa.RecordBatch.from_pydict({"p": ["fine", "a\nb", "\x7f"]})
    there = open_storage("s3://bucket/table")
    with pytest.raises(RecordKeyError, match=r"'a\\nb' is not a valid folder.*partitionpath\.urlencode"):
        partition_paths(rows, spec("p").at(there))
    encoded = spec("p", url_encode=True).at(there)
    assert partition_paths(rows, encoded).to_pylist() == ["fine", "a%0Ab", "%7F"]
    assert partition_paths(rows, spec("p").at(open_storage(str(tmp_path)))).to_pylist() == ["fine", "a\nb", "\x7f"]


def test_colons_below_the_first_level():
    """As by Apache Hudi 1.2.0, which refuses a colon in the first level, hive-style or not."""
    rows = pa.RecordBatch.from_pydict({"p": ["10:30"], "day": ["monday"]})
    assert partition_paths(rows, spec("day", "p")).to_pylist() == ["monday/10:30"]
    assert partition_paths(rows, spec("p", url_encode=True)).to_pylist() == ["10%3A30"]
    with pytest.raises(RecordKeyError, match=r"'p=10:30/day=monday' is not a valid folder.*partitionpath\.urlencode"):
        partition_paths(rows, spec("p", "day", hive_style=True))


def test_what_is_refused():
    with pytest.raises(RecordKeyError, match=r"field 'q' .*does not exist"):
        partition_paths(ROWS, spec("q"))
    formatted = replace(spec("d"), partition_fields=(PartitionField("d", PartitionKind.TIMESTAMP),))
    with pytest.raises(UnsupportedTableError, match="'d' holds formatted times"):
        partition_paths(ROWS, formatted)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_numbers_that_spark_may_format_differently(kind: pa.DataType):
    usual = [0.0, -0.5, 0.125, 1.5, 123456.0, float("nan"), float("-inf"), None]
    rows = pa.RecordBatch.from_pydict({"id": ["a"] * len(usual), "p": pa.array(usual, kind)})
    assert partition_paths(rows, spec("p")).to_pylist()[:4] == ["0.0", "-0.5", "0.125", "1.5"]
    assert new_record_keys(rows, spec(keys=("id", "p")))[4].as_py() == "id:a,p:123456.0"
    for value in (1897508860.0, 1e-30, 1.2345678) if kind == pa.float32() else (2e23, 5e-324, 0.1234567890123456):
        one = pa.RecordBatch.from_pydict({"id": ["a"], "p": pa.array([value], kind)})
        for write, told in ((partition_paths, spec("p")), (new_record_keys, spec(keys=("p",)))):
            with pytest.raises(RecordKeyError, match=r"of the field 'p' is formatted differently by some releases"):
                write(one, told)


def test_new_keys():
    with pytest.raises(RecordKeyError, match="'n', 'id' are all null or empty"):
        new_record_keys(ROWS, spec(keys=("n", "id")))
    assert new_record_keys(ROWS.slice(2), spec(keys=("n", "id"))).to_pylist() == ["n:3,id:__null__", "n:-4,id:b"]
    for rows in (ROWS.slice(1, 1), ROWS.slice(2, 1)):
        with pytest.raises(RecordKeyError, match="'id' is null or empty"):
            new_record_keys(rows, spec())
    assert new_record_keys(ROWS.slice(3), spec()).to_pylist() == ["b"]
    assert generated_keys("20240101", 7, 2, 2).to_pylist() == ["20240101_7_2", "20240101_7_3"]
