"""Partition paths read back into values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.keygen.key_spec import ENCODED_CHARS
from pyhudi.keygen.partition_value_extractor import decode_partition_paths, partition_texts
from pyhudi.table.config.key_generator_type import KeyGenType
from tests.unit.keygen.test_key_spec import TIMES, Config

DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def decode(config: Config, kind: pa.DataType, path: str) -> tuple[Any, bool]:
    schema = pa.schema([("p", kind)])
    found = decode_partition_paths(config, schema, [path])
    assert found.schema.field("p").type == kind
    return found["p"][0].as_py(), found["exact_0"][0].as_py()


@pytest.mark.parametrize(
    ("kind", "path", "value", "exact"),
    [
        (pa.string(), "a", "a", True),
        (pa.string(), "a/b", "a/b", False),
        (pa.string(), DEFAULT, None, False),
        (pa.string(), "a%2Fb", "a%2Fb", True),
        (pa.int32(), "-7", -7, True),
        (pa.int8(), "300", None, False),
        (pa.int32(), "x", None, False),
        (pa.int64(), DEFAULT, None, True),
        (pa.float64(), "1.0E10", 1e10, True),
        (pa.bool_(), "true", True, True),
        (pa.bool_(), "yes", None, False),
        (pa.decimal128(38, 18), "1E-18", Decimal("1E-18"), True),
        (pa.decimal128(10, 2), "1.50", Decimal("1.50"), True),
        (pa.date32(), "2024-02-29", dt.date(2024, 2, 29), True),
        (pa.date32(), "2024/02/29", dt.date(2024, 2, 29), True),
        (pa.date32(), "2024-02-30", None, False),
        (pa.timestamp("us", "UTC"), "-1", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), True),
        (pa.timestamp("ms", "UTC"), "1704164645678", dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC), False),
        (pa.timestamp("us"), "0", dt.datetime(1970, 1, 1), True),
        (pa.timestamp("us", "UTC"), "2024-01-02 03:04:05.0", None, False),
        (pa.binary(), "00ff", b"\x00\xff", True),
        (pa.binary(), "[B@50f99e2d", None, False),
        (pa.list_(pa.int32()), "[1]", None, False),
    ],
)
def test_values(kind: pa.DataType, path: str, value: Any, exact: bool) -> None:
    assert decode(Config(KeyGenType.SIMPLE), kind, path) == (value, exact)


def test_hive_style() -> None:
    config = Config(KeyGenType.COMPLEX, partition="a,b", hive_style=True)
    assert partition_texts(config, "a=x/y/b=1") == ("x/y", "1")
    assert partition_texts(config, f"a={DEFAULT}/b=") == (None, "")
    assert partition_texts(config, "x/1") is None
    found = decode_partition_paths(config, pa.schema([("a", pa.string()), ("b", pa.int32())]), ["a=x/b=1", "odd"])
    assert found.to_pydict() == {"a": ["x", None], "b": [1, None], "exact_0": [True, False], "exact_1": [True, False]}


def test_levels_of_formatted_times() -> None:
    config = Config(KeyGenType.CUSTOM, partition="a:simple,t:timestamp", properties=TIMES)
    assert partition_texts(config, "x/2024/01/02") == ("x", "2024/01/02")
    assert partition_texts(config, "x/2024") is None
    schema = pa.schema([("a", pa.string()), ("t", pa.int64())])
    assert decode_partition_paths(config, schema, ["x/2024/01/02"]).to_pydict() == {
        "a": ["x"], "t": [None], "exact_0": [True], "exact_1": [False],
    }  # fmt: skip


def test_texts_of_formatted_times() -> None:
    """Where files do not hold the column, as Apache Hudi: the path's text, or the number that it is."""
    config = Config(KeyGenType.TIMESTAMP, properties={**TIMES, "hoodie.table.partition.fields": "p"})
    assert decode(config, pa.string(), "2024/01/02") == ("2024/01/02", False)
    assert decode(config, pa.int64(), "20240102") == (20240102, False)
    for kind in (pa.timestamp("us", "UTC"), pa.date32(), pa.float64()):
        assert decode(config, kind, "20240102") == (None, False)


@pytest.mark.parametrize("keygen", [KeyGenType.CUSTOM, KeyGenType.USER_PROVIDED])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.date32()])
def test_nothing_is_exact_where_kinds_are_not_known(keygen: KeyGenType, kind: pa.DataType) -> None:
    """Version 6 does not store that a field of the custom generator is a formatted time."""
    config = Config(keygen, properties={"hoodie.table.partition.fields": "p"})
    assert decode(config, kind, "20231114")[1] is False
    known = Config(KeyGenType.CUSTOM, properties={"hoodie.table.partition.fields": "p:simple"})
    assert decode(known, pa.int64(), "20231114") == (20231114, True)


def test_not_partitioned() -> None:
    config = Config(KeyGenType.NON_PARTITION, partition="p")
    assert partition_texts(config, "") == ()
    assert decode_partition_paths(config, pa.schema([]), [""]).num_columns == 0


def test_nested_field() -> None:
    config = Config(KeyGenType.SIMPLE, partition="s.x")
    schema = pa.schema([("s", pa.struct([("x", pa.int32())]))])
    assert decode_partition_paths(config, schema, ["5"])["s.x"].to_pylist() == [5]


@given(st.text(min_size=1).filter(lambda t: t != DEFAULT and t.isprintable()))
def test_encoded_texts_come_back(text: str) -> None:
    path = "".join(f"%{ord(c):02X}" if c in ENCODED_CHARS else c for c in text)
    assert decode(Config(KeyGenType.SIMPLE, url_encode=True), pa.string(), path) == (text, True)
