"""Keys and ids: the vectors of docs/format/metadata.md, and all keys of the golden tables."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.metadata.indexes import secondary_index_definition as secondary
from pyhudi.metadata.records import file_group_hash, metadata_keys
from pyhudi.metadata.records.metadata_record import decode
from tests.properties import examples
from tests.unit.metadata.samples import golden_files

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ts", "oyTjviKHuhI="),
        ("id", "sLZoasJosec="),
        ("st.x", "pFdo2URy9PQ="),
        ("_hoodie_record_key", "uSJGdDiVr/k="),
        ("_hoodie_commit_time", "JBBzUToHtLc="),
        ("_hoodie_partition_path", "qeAH/5q1L8c="),
        (metadata_keys.PARTITION_STAT, "2CMHrhWVE9w="),
    ],
)
def test_column_ids(name: str, expected: str):
    assert metadata_keys.column_ids([name, name]).to_pylist() == [expected] * 2


def test_partition_ids():
    expected = {"p0": "Z+KNMU8CLlo=", "p1": "qT4Pioac33A=", "": "FXThHwelITM=", "2024/01/01": "NEj/wCdb1IM="}
    assert dict(zip(expected, metadata_keys.partition_ids(expected).to_pylist(), strict=True)) == expected
    assert metadata_keys.partition_ids(pa.array([], pa.string())).to_pylist() == []
    assert metadata_keys.paths_of_keys(metadata_keys.partition_names(["", "a"])).to_pylist() == ["", "a"]


def test_file_ids():
    name = "e9850fd0-142c-4d86-8445-86fbbd496c52-0_0-31-38_20261121092947775.parquet"
    assert metadata_keys.hashed_file_names([name]).to_pylist() == ["iwY7g6S+Sx9ww7UD7I3d4A=="]


@pytest.mark.parametrize(
    ("secondary", "record", "key", "groups"),
    [
        ("name-1", "k1", "name-1$k1", (9, 5)),
        ("na$me", "k2", "na\\$me$k2", (3, 4)),
        (None, "k$3", "\0$k\\$3", (6, 2)),
        ("new", "k1", "new$k1", (6, 4)),
        ("a\\b", "c\\", "a\\\\b$c\\\\", None),
    ],
)
def test_secondary_keys(secondary: str | None, record: str, key: str, groups: tuple[int, int] | None):
    made = metadata_keys.secondary_key(pa.array([secondary], pa.string()), pa.array([record]))
    assert made.to_pylist() == [key]
    if groups is not None:
        assert (
            tuple(int(file_group_hash.secondary_file_group_index_of(made, 10, version)[0]) for version in (9, 8))
            == groups
        )
    assert [part.to_pylist() for part in metadata_keys.split_secondary_key(made)] == [[secondary], [record]]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.none() | TEXTS, TEXTS), min_size=1, max_size=10))
def test_secondary_keys_come_back(pairs: list[tuple[str | None, str]]):
    secondary, record = (pa.array(column, pa.string()) for column in zip(*pairs, strict=True))
    back = metadata_keys.split_secondary_key(metadata_keys.secondary_key(secondary, record))
    assert [part.to_pylist() for part in back] == [secondary.to_pylist(), record.to_pylist()]
    # values with the same prefix are the same
    prefixes = metadata_keys.secondary_prefix(secondary).to_pylist()
    assert len(set(prefixes)) == len(set(secondary.to_pylist()))


def test_data_partitions():
    expected = {"p0": "p0", "year=2024/month=1": "year%3D2024%2Fmonth%3D1", "a_b-c%d": "a%5Fb%2Dc%25d", "": ""}
    assert {path: metadata_keys.data_partition_id(path) for path in expected} == expected


def test_keys_of_golden_tables():
    count = 0
    for file in golden_files():
        table = decode(file.entries()["value"], file.schema).combine_chunks()
        key = file.entries()["key"].cast(pa.string())
        if file.partition == "partition_stats":
            stats = table["ColumnStatsMetadata"].combine_chunks()
            made = metadata_keys.partition_stats_keys(
                stats.field("columnName"), metadata_keys.paths_of_keys(stats.field("fileName"))
            )
            assert made.equals(key.combine_chunks())
        elif file.partition == "column_stats":
            stats = table["ColumnStatsMetadata"].combine_chunks()
            columns, files = (
                metadata_keys.column_ids(stats.field("columnName")),
                metadata_keys.hashed_file_names(stats.field("fileName")),
            )
            assert pc.utf8_slice_codeunits(key, 0, 12).to_pylist() == columns.to_pylist()
            assert pc.utf8_slice_codeunits(key, 24).to_pylist() == files.to_pylist()
        elif file.partition == "files":
            continue
        count += table.num_rows
    assert count > 300


def test_values_of_secondary_indexes_as_apache_hudi_writes_them():
    day, time = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 30, 15, 123456, tzinfo=dt.UTC)
    values = {
        pa.string(): ("a$b", "a$b"),
        pa.int32(): (-2, "-2"),
        pa.int64(): (10**12, "1000000000000"),
        pa.date32(): (day, "19723"),
        pa.timestamp("us", "UTC"): (time, "1704069015123456"),
    }
    for kind, (value, text) in values.items():
        assert secondary.can_be_indexed(kind)
        assert secondary.index_texts(pa.array([value, None], kind)).to_pylist() == [text, None]
    others = (pa.float64(), pa.decimal128(10, 2), pa.bool_(), pa.binary(), pa.timestamp("ms"), pa.list_(pa.string()))
    assert not any(map(secondary.can_be_indexed, others))
