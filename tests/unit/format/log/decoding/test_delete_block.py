"""Delete blocks of all three content versions."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import encode_datum, load_schema
from pyhudi.format.log import BlockType, decode_deletes, scan_blocks
from pyhudi.format.log.decoding.uniform_delete_list import decode_uniform
from tests.unit.format import golden
from tests.unit.format.log.samples import block, golden_log_files, kryo_samples

NAMESPACE = "org.apache.hudi.avro.model."
NO_FIELDS = pa.schema([])


def fields(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


def wrapped(kind: str, value: Any) -> Any:
    return (f"{NAMESPACE}{kind}Wrapper", {"value": value})


def several(*values: Any) -> Any:
    return (f"{NAMESPACE}ArrayWrapper", {"wrappedValues": list(values)})


def delete_list(*deletes: tuple[str | None, str | None, Any]) -> bytes:
    rows = [{"recordKey": k, "partitionPath": p, "orderingVal": o} for k, p, o in deletes]
    return encode_datum(load_schema("HoodieDeleteRecordList.v9"), {"deleteRecordList": rows})


def decoded(body: bytes, ordering: pa.Schema = NO_FIELDS, version: int = 3) -> list[tuple[Any, ...]]:
    content = struct.pack(">ii", version, len(body)) + body
    (found,) = scan_blocks(block(1, {0: "1"}, content))
    table = decode_deletes(found, ordering)
    table.validate(full=True)
    assert table.schema.types[2:-1] == ordering.types
    return [tuple(row.values()) for row in table.to_pylist()]


DATE, TIME = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC)
MICROS = (TIME - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("kind", "stored", "target", "expected"),
    [
        ("Boolean", True, pa.bool_(), True),
        ("Int", 7, pa.int32(), 7),
        ("Int", 7, pa.int64(), 7),
        ("Int", 19724, pa.date32(), DATE),
        ("Long", 0, pa.int64(), 0),
        ("Long", 2**40, pa.int64(), 2**40),
        ("Long", MICROS, pa.timestamp("us", "UTC"), TIME),
        ("Long", MICROS // 1000, pa.timestamp("ms", "UTC"), TIME.replace(microsecond=678000)),
        ("TimestampMicros", MICROS, pa.timestamp("us", "UTC"), TIME),
        ("TimestampMicros", MICROS, pa.timestamp("ms", "UTC"), TIME.replace(microsecond=678000)),
        ("TimestampMicros", MICROS, pa.timestamp("us"), TIME.replace(tzinfo=None)),
        ("TimestampMicros", MICROS, pa.int64(), MICROS),
        ("TimeMicros", 5_000_000, pa.time64("us"), dt.time(0, 0, 5)),
        ("Date", 19724, pa.date32(), DATE),
        ("Float", 1.5, pa.float32(), 1.5),
        ("Float", 1.5, pa.float64(), 1.5),
        ("Double", -2.25, pa.float64(), -2.25),
        ("Bytes", b"\xff\x00", pa.binary(), b"\xff\x00"),
        ("Bytes", b"\xff\x85", pa.decimal128(10, 2), Decimal("-1.23")),
        ("Decimal", Decimal("1.230000000000000"), pa.decimal128(10, 2), Decimal("1.23")),
        ("String", "ü", pa.string(), "ü"),
        ("String", "", pa.string(), ""),
    ],
)
def test_ordering_values_of_every_kind(kind: str, stored: Any, target: pa.DataType, expected: Any) -> None:
    body = delete_list(("k1", "p", wrapped(kind, stored)), ("k2", "", wrapped(kind, stored)))
    assert decode_uniform(memoryview(body)) is not None
    ordering = fields(ts=target)
    assert decoded(body, ordering) == [("k1", "p", expected, False), ("k2", "", expected, False)]
    # the default among them sends the block the general way
    mixed = delete_list(("k1", "p", wrapped(kind, stored)), ("k2", None, None), ("k3", "p", wrapped(kind, stored)))
    assert decode_uniform(memoryview(mixed)) is None
    assert decoded(mixed, ordering) == [
        ("k1", "p", expected, False),
        ("k2", None, None, True),
        ("k3", "p", expected, False),
    ]


def test_the_default_is_the_int_zero() -> None:
    body = delete_list(("a", "", wrapped("Int", 0)), ("b", "", wrapped("Int", 1)), ("c", "", wrapped("Int", -5)))
    assert decoded(body, fields(ts=pa.int64())) == [("a", "", None, True), ("b", "", 1, False), ("c", "", -5, False)]
    assert decoded(body) == [("a", "", True), ("b", "", False), ("c", "", False)]
    assert decoded(delete_list(("a", "", wrapped("Int", 0))), fields(o=pa.string())) == [("a", "", None, True)]
    assert decoded(delete_list(("a", "", None)), fields(o=pa.string())) == [("a", "", None, True)]
    assert decoded(b"\0", fields(o=pa.string())) == []


def test_several_ordering_fields() -> None:
    both = fields(a=pa.int64(), b=pa.string())
    body = delete_list(
        ("k1", "", several(wrapped("Long", 5), wrapped("String", "m"))),
        ("k2", "", several(wrapped("Long", -9), wrapped("String", ""))),
    )
    assert decode_uniform(memoryview(body)) is not None
    assert decoded(body, both) == [("k1", "", 5, "m", False), ("k2", "", -9, "", False)]
    dates = delete_list(("k", "", several((f"{NAMESPACE}LocalDateWrapper", {"value": 19724}), wrapped("Int", 0))))
    assert decoded(dates, fields(a=pa.date32(), b=pa.int32())) == [("k", "", DATE, 0, False)]
    nulls = delete_list(("k1", "", several(None, wrapped("Int", 3))), ("k2", "", wrapped("Int", 0)))
    assert decoded(nulls, fields(a=pa.string(), b=pa.int64())) == [
        ("k1", "", None, 3, False),
        ("k2", "", None, None, True),
    ]
    with pytest.raises(FormatError, match="2 ordering values"):
        decoded(body, fields(a=pa.int64()))


def test_values_of_another_type_are_refused() -> None:
    for kind, stored, target in (
        ("String", "x", pa.int64()),
        ("Boolean", True, pa.timestamp("us")),
        ("Long", 2**40, pa.date32()),
    ):
        with pytest.raises(FormatError, match="'ts'"):
            decoded(delete_list(("k", "", wrapped(kind, stored))), fields(ts=target))


_VALUES = st.one_of(
    st.none(),
    st.just(("Int", 0)),
    st.tuples(st.just("Long"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("Int"), st.integers(-(2**31), 2**31 - 1)),
)
_KEYS = st.one_of(st.none(), st.text(max_size=70))


@settings(deadline=None)
@given(st.lists(st.tuples(_KEYS, _KEYS, _VALUES), max_size=20), st.booleans())
def test_any_deletes(deletes: list[tuple[Any, Any, Any]], uniform: bool) -> None:
    if uniform:
        deletes = [(key, partition, ("Long", value[1] if value else 5)) for key, partition, value in deletes]
    body = delete_list(*((k, p, v and wrapped(*v)) for k, p, v in deletes))
    expected = []
    for key, partition, value in deletes:
        natural = value is None or value == ("Int", 0)
        expected.append((key, partition, None if natural else value[1], natural))
    assert decoded(body, fields(ts=pa.int64())) == expected
    if uniform and deletes and all(key is not None and partition is not None for key, partition, _ in deletes):
        assert decode_uniform(memoryview(body)) is not None


def test_kryo_deletes() -> None:
    samples = kryo_samples()
    long_key = "x" * 200
    assert decoded(samples["v1"], fields(ts=pa.int64()), 1) == [
        ("key-1", "p/a", None, True),
        ("k", "p/a", None, True),
        ("ключ€😀", "", None, True),
        (long_key, "q", None, True),
    ]
    assert decoded(samples["v1empty"], version=1) == []
    assert decoded(samples["v1dup"], version=1) == [("a", "same", True)] * 2
    long = fields(ts=pa.int64())
    assert decoded(samples["v2int"], long, 2) == [
        ("key-1", "p/a", 5, False),
        ("key-22", "p/a", -300, False),
        ("d", "p/a", None, True),
    ]
    top, bottom = 2**63 - 1, -(2**63)
    assert [row[2] for row in decoded(samples["v2long"], long, 2)] == [5, top, bottom, top]
    text = fields(o=pa.string())
    assert [row[2] for row in decoded(samples["v2string"], text, 2)] == ["zz", "2024", "2024", ""]
    assert [row[2] for row in decoded(samples["v2utf8"], text, 2)] == ["zä", "b"]
    decimals = [Decimal("-12345678901234567890.123")] * 2 + [Decimal(0), Decimal(1)]
    assert [row[2] for row in decoded(samples["v2decimal"], fields(o=pa.decimal128(30, 3)), 2)] == decimals
    for name in ("v2date", "v2ld"):
        assert decoded(samples[name], fields(o=pa.date32()), 2) == [("a", "same", DATE, False)]
    moment = pa.timestamp("us", "UTC")
    assert decoded(samples["v2ts"], fields(o=moment), 2)[0][2] == dt.datetime(2023, 11, 14, 22, 13, 20, 123000, dt.UTC)
    assert decoded(samples["v2inst"], fields(o=moment), 2)[0][2] == dt.datetime(1970, 1, 1, 0, 0, 5, 7, dt.UTC)


def test_kryo_classes_that_are_not_allowed() -> None:
    sample = kryo_samples()["v2date"].replace(b"java.sql.Dat", b"evil.sql.Dat")
    with pytest.raises(FormatError, match=r"evil\.sql\.Date"):
        decoded(sample, version=2)


@pytest.mark.parametrize("name", sorted(kryo_samples()))
def test_damaged_kryo_deletes(name: str) -> None:
    """Whatever a flipped bit or a cut does, it is an error or deletes; never another exception."""
    sample = kryo_samples()[name]
    version = int(name[1])
    for at in range(len(sample)):
        for broken in (
            sample[:at],
            *(sample[:at] + bytes((sample[at] ^ 1 << bit,)) + sample[at + 1 :] for bit in range(8)),
        ):
            try:
                rows = decoded(broken, version=version)
            except FormatError:
                continue
            assert len(broken) == len(sample)
            assert len(rows) <= len(sample)


@pytest.mark.parametrize("table", golden.names())
def test_golden_blocks(table: str) -> None:
    for _, data in golden_log_files(table):
        for found in scan_blocks(data):
            if found.type is BlockType.DELETE:
                deletes = decode_deletes(found, NO_FIELDS)
                assert not deletes["_hoodie_record_key"].null_count
                positions = found.positions()
                assert positions is None or len(positions) == len(deletes)


def test_broken_blocks_are_refused() -> None:
    body = delete_list(("k1", "p", wrapped("Long", 5)))
    for version, broken in (
        (4, body),
        (0, body),
        (3, body[:-1]),
        (3, body + b"\0"),
        (3, body[1:]),
        (2, body),
        (1, b""),
    ):
        with pytest.raises(FormatError):
            decoded(broken, version=version)
    (found,) = scan_blocks(block(1, {0: "1"}, struct.pack(">ii", 3, 2) + b"\0"))
    with pytest.raises(FormatError, match="claims"):
        decode_deletes(found, NO_FIELDS)
    (other,) = scan_blocks(block(0, {0: "1"}, b""))
    with pytest.raises(FormatError, match="no deletes"):
        decode_deletes(other, NO_FIELDS)
