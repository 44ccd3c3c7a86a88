"""Versions of metadata records made one, against the rules spelled out record by record."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.metadata.records.combine_records import Version, fold_versions
from pyhudi.metadata.records.metadata_record import (
    COLUMN_STATS_PAYLOAD,
    FILES_PAYLOAD,
    RecordType,
    decode,
    encode,
    record_schema,
)
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_factory import file_records, partition_stats_records
from pyhudi.metadata.records.stats_values import NULL_TYPE, unwrap, wrap_values
from tests.properties import examples

VERSIONS = (6, 8, 9)
NAMES = st.sampled_from(["a", "b", "c"])
EVENT = st.dictionaries(st.sampled_from(["p", "q"]), st.dictionaries(NAMES, st.integers(0, 3), min_size=1))
"""Files of partitions with sizes; 0: deleted."""


def version_of(records: RecordChanges, schema: str) -> Version:
    """The version that consists of some records."""
    return Version(records.keys, records.values, schema, records.deletes)


def files(event: dict[str, dict[str, int]]) -> RecordChanges:
    def table(deleted: bool) -> pa.Table:
        rows = [
            {"partition": p, "name": n, "size": s}
            for p, names in event.items()
            for n, s in names.items()
            if (s == 0) is deleted
        ]
        schema = pa.schema([("partition", pa.string()), ("name", pa.string()), ("size", pa.int64())])
        return pa.Table.from_pylist(rows, schema=schema)

    return file_records(table(False), event, 9, table(True))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(EVENT, max_size=6))
def test_lists_of_files(events: list[dict[str, dict[str, int]]]) -> None:
    folded = fold_versions("files", [version_of(files(e), record_schema(9)) for e in events], 9)
    expected: dict[str, dict[str, tuple[int, bool]]] = {}
    for event in events:
        for partition, names in event.items():
            known = expected.setdefault(partition, {})
            for name, size in names.items():
                before = known.get(name)
                if size == 0 and before is not None and not before[1]:
                    del known[name]
                elif size == 0:
                    known[name] = (0, True)
                elif before is not None and not before[1]:
                    known[name] = (max(size, before[0]), False)
                else:
                    known[name] = (size, False)
    found = maps(folded)
    found.pop("__all_partitions__", None)
    assert found == expected


def maps(records: RecordChanges) -> dict[str, dict[str, tuple[int, bool]]]:
    payload = decode(records.values, record_schema(9))[FILES_PAYLOAD].to_pylist()
    return {
        key: {name: (info["size"], info["isDeleted"]) for name, info in entries}
        for key, entries in zip(records.keys.to_pylist(), payload, strict=True)
    }


def test_the_newest_stands_and_deletes_take_away() -> None:
    def one(key: str, high: int) -> RecordChanges:
        row = {
            "partitionName": "p",
            "fileIdHighBits": high,
            "fileIdLowBits": 0,
            "fileIndex": 0,
            "fileId": "",
            "instantTime": 1,
            "fileIdEncoding": 0,
        }
        return RecordChanges(pa.array([key]), encode(RecordType.RECORD_INDEX, pa.Table.from_pylist([row]), 9))

    schema = record_schema(9)
    gone = Version(deletes=pa.array(["k", "x"]))
    versions = [
        version_of(one("k", 1), schema),
        gone,
        version_of(one("l", 2), schema),
        version_of(one("l", 3), schema),
    ]
    found = fold_versions("record_index", versions, 9)
    assert found.keys.to_pylist() == ["l"]
    assert decode(found.values, schema)["recordIndexMetadata"][0].as_py()["fileIdHighBits"] == 3
    again = fold_versions("record_index", [*versions, version_of(one("k", 4), schema)], 9)
    assert sorted(again.keys.to_pylist()) == ["k", "l"]


TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [-5, 3, 7]),
    "text": (pa.string(), ["a", "b", "é"]),
    "double": (pa.float64(), [-1.5, 2.0, float("nan")]),
    "decimal": (pa.decimal128(20, 4), [decimal.Decimal("-3.0001"), decimal.Decimal("2.5"), decimal.Decimal("300")]),
    "bytes": (pa.binary(), [b"", b"\x01", b"\xff"]),
    "bool": (pa.bool_(), [False, True, True]),
}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_loose_statistics_widen(name: str) -> None:
    kind, values = TYPES[name]

    def stats(low: Any, high: Any, *, tight: bool, nulls: int = 1) -> Version:
        column = {"min": low, "max": high, "values": 2, "nulls": nulls, "size": 10, "plain": 20}
        struct = pa.struct([("min", kind), ("max", kind), *((n, pa.int64()) for n in list(column)[2:])])
        bounds = pa.array([{"c": column}], pa.struct([("c", struct)]))
        exact = ("p",) if tight else ()
        return version_of(
            partition_stats_records(pa.array(["p"]), bounds, 9, tight=exact, dropped=()), record_schema(9)
        )

    def folded(*versions: Version) -> dict[str, Any]:
        found = fold_versions("partition_stats", versions, 9)
        (payload,) = decode(found.values, record_schema(9))[COLUMN_STATS_PAYLOAD].combine_chunks().to_pylist()
        table = decode(found.values, record_schema(9))[COLUMN_STATS_PAYLOAD].combine_chunks()
        ends = [unwrap(table.field(n), kind, table.field("valueType"))[0][0].as_py() for n in ("minValue", "maxValue")]
        return {"ends": ends, **payload}

    low, middle, high = values
    found = folded(stats(middle, middle, tight=True), stats(low, low, tight=False), stats(high, high, tight=False))
    assert same(found["ends"], [low, high])
    assert (found["valueCount"], found["nullCount"], found["totalSize"]) == (6, 3, 30)
    empty = decode(stats(None, None, tight=False).values, record_schema(9))[COLUMN_STATS_PAYLOAD].combine_chunks()
    kinds = pc.struct_field(empty, ["valueType", "typeOrdinal"])
    assert kinds.to_pylist() != [NULL_TYPE], "Apache Hudi merges by the type that the newer record names"
    nothing = folded(stats(low, middle, tight=True), stats(None, None, tight=False, nulls=2))
    assert same(nothing["ends"], [low, middle])
    assert same(folded(stats(None, None, tight=True, nulls=2), stats(low, middle, tight=False))["ends"], [low, middle])
    assert same(folded(stats(low, high, tight=True), stats(middle, middle, tight=True))["ends"], [middle, middle])


def same(found: list[Any], expected: list[Any]) -> bool:
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_another_version_are_written_anew(version: int) -> None:
    old = file_records(pa.table({"partition": ["p"], "name": ["a"], "size": pa.array([3])}), ["p"], version)
    found = fold_versions("files", [version_of(old, record_schema(version))], 9)
    assert maps(found) == {"__all_partitions__": {"p": (0, False)}, "p": {"a": (3, False)}}


def test_numbers_of_a_column_that_got_wider() -> None:
    def stats(kind: pa.DataType, value: float) -> Version:
        column = {"min": value, "max": value, "values": 1, "nulls": 0, "size": 1, "plain": 1}
        struct = pa.struct([("min", kind), ("max", kind), *((n, pa.int64()) for n in list(column)[2:])])
        bounds = pa.array([{"c": column}], pa.struct([("c", struct)]))
        records = partition_stats_records(pa.array(["p"]), bounds, 9, tight=(), dropped=())
        return version_of(records, record_schema(9))

    found = fold_versions("partition_stats", [stats(pa.int32(), 3), stats(pa.int64(), 1 << 40)], 9)
    table = decode(found.values, record_schema(9))[COLUMN_STATS_PAYLOAD].combine_chunks()
    ends = [
        unwrap(table.field(n), pa.int64(), table.field("valueType"))[0][0].as_py() for n in ("minValue", "maxValue")
    ]
    assert ends == [3, 1 << 40]
    # a short float is read as what its text is, which is less than what it is bit by bit
    found = fold_versions("partition_stats", [stats(pa.float32(), 0.1), stats(pa.float64(), 0.1000000005)], 9)
    table = decode(found.values, record_schema(9))[COLUMN_STATS_PAYLOAD].combine_chunks()
    ends = [unwrap(table.field(n), pa.float64(), None)[0][0].as_py() for n in ("minValue", "maxValue")]
    assert ends == [0.1, 0.1000000005]


def test_what_cannot_be_compared_is_not_known() -> None:
    """Bounds of which nothing follows, rather than bounds that leave rows out."""

    def stats(kind: pa.DataType, low: Any, high: Any, nulls: int = 0) -> Version:
        column = {"min": low, "max": high, "values": 2, "nulls": nulls, "size": 1, "plain": 1}
        struct = pa.struct([("min", kind), ("max", kind), *((n, pa.int64()) for n in list(column)[2:])])
        bounds = pa.array([{"c": column}], pa.struct([("c", struct)]))
        records = partition_stats_records(pa.array(["p"]), bounds, 9, tight=(), dropped=())
        return version_of(records, record_schema(9))

    def folded(*versions: Version) -> dict[str, Any]:
        found = fold_versions("partition_stats", versions, 9)
        (payload,) = decode(found.values, record_schema(9))[COLUMN_STATS_PAYLOAD].to_pylist()
        return payload  # type: ignore[no-any-return]

    numbers, texts = stats(pa.int32(), 3, 5), stats(pa.string(), "7", "8")
    scaled = [stats(pa.decimal128(9, scale), decimal.Decimal(1), decimal.Decimal(2)) for scale in (0, 2)]
    unknown = stats(pa.int32(), None, None)
    for versions in ((numbers, texts), scaled, (numbers, unknown), (unknown, numbers), (numbers, unknown, numbers)):
        found = folded(*versions)
        assert (found["minValue"], found["maxValue"], found["nullCount"]) == (None, None, None)
        assert found["valueCount"] == 2 * len(versions)
    nothing = stats(pa.int32(), None, None, nulls=2)
    assert folded(numbers, nothing)["nullCount"] == folded(nothing, numbers)["nullCount"] == 2
    assert folded(numbers, nothing)["minValue"] == folded(numbers)["minValue"]


STATISTICS = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.integers(-3, 3),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from([0, 0, 0, 1]),
)
"""Key, least value, how far the greatest is from it, whether the bounds are exact, whether there is nothing more."""


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(STATISTICS, max_size=3, unique_by=lambda s: s[0]) | st.sets(NAMES), max_size=6))
def test_statistics_and_deletes(history: list[Any]) -> None:
    versions, expected = [], {}
    for event in history:
        if isinstance(event, set):
            versions.append(Version(deletes=pa.array(sorted(event), pa.string())))
            expected = {key: found for key, found in expected.items() if key not in event}
            continue
        rows = [{"low": s[1], "high": s[1] + s[2], "tight": s[3], "gone": bool(s[4])} for s in event]
        versions.append(Version(pa.array([s[0] for s in event], pa.string()), statistics(rows), record_schema(9)))
        for (key, *_), row in zip(event, rows, strict=True):
            before = expected.get(key)
            if before is not None and not (row["tight"] or row["gone"] or before["gone"]):
                row["low"], row["high"] = min(row["low"], before["low"]), max(row["high"], before["high"])
            expected[key] = row
    found = fold_versions("column_stats", versions, 9)
    payload = decode(found.values, record_schema(9))[COLUMN_STATS_PAYLOAD].combine_chunks()
    low, high = (unwrap(payload.field(side), pa.int64())[0].to_pylist() for side in ("minValue", "maxValue"))
    seen = dict(zip(found.keys.to_pylist(), zip(low, high, strict=True), strict=True))
    assert seen == {key: (row["low"], row["high"]) for key, row in expected.items() if not row["gone"]}


def statistics(rows: list[dict[str, Any]]) -> pa.Array:
    columns = {
        "minValue": wrap_values(pa.array([row["low"] for row in rows], pa.int64()), 9),
        "maxValue": wrap_values(pa.array([row["high"] for row in rows], pa.int64()), 9),
        "valueCount": pa.array([10] * len(rows), pa.int64()),
        "nullCount": pa.array([0] * len(rows), pa.int64()),
        "isDeleted": pa.array([row["gone"] for row in rows], pa.bool_()),
        "isTightBound": pa.array([row["tight"] for row in rows], pa.bool_()),
    }
    return encode(RecordType.COLUMN_STATS, pa.table(columns), 9)
