"""Arrow columns into Avro records: the same bytes as fastavro's, for tables of any types."""

from __future__ import annotations

import io
import json
import struct

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format import varint
from pyhudi.format.avro.container import encode_long
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.log.decoding.avro_block import decode_framed
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from tests.unit.format.log.samples import datums_of, tables


def encoded(table: pa.Table, schema: str, **more: object) -> list[bytes]:
    flat = table.combine_chunks()
    columns = {
        name: flat[name].chunk(0) if flat.num_rows else pa.array([], flat[name].type) for name in flat.column_names
    }
    return encode_records(record_type(schema), columns, table.num_rows, **more).to_pylist()  # type: ignore[arg-type]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables(), st.integers(0, 3))
def test_any_table_is_encoded_as_by_fastavro(case: tuple[pa.Table, str], skip: int) -> None:
    table, schema = case
    expected = datums_of(table, schema)
    assert encoded(table, schema) == expected
    # slices begin in the middle of buffers
    columns = {name: table[name].combine_chunks()[skip:] for name in table.column_names}
    columns = {name: c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for name, c in columns.items()}
    rest = max(0, table.num_rows - skip)
    assert encode_records(record_type(schema), columns, rest).to_pylist() == expected[skip:]
    prefixed = encode_records(record_type(schema), columns, rest, prefixed=True).to_pylist()
    assert prefixed == [struct.pack(">i", len(datum)) + datum for datum in expected[skip:]]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers(values: list[int]) -> None:
    array = np.array(values, np.int64)
    data, used = varint.encode(array)
    assert [bytes(row[mask]) for row, mask in zip(data, used, strict=True)] == [encode_long(v) for v in values]
    assert varint.encoded_sizes(array).tolist() == [len(encode_long(v)) for v in values]


@pytest.mark.parametrize("edge", [1 << k for k in range(63)])
def test_numbers_where_a_byte_is_added(edge: int) -> None:
    for value in (edge - 1, edge, edge + 1, -edge, -edge - 1):
        data, used = varint.encode(np.array([value], np.int64))
        assert data[0][used[0]].tobytes() == encode_long(value)


TEXTS = (
    '{"type":"record","name":"r","fields":[{"name":"a","type":["null","string"]},{"name":"b","type":"string"},'
    '{"name":"c","type":["string","null"]}]}'
)


def test_constants_and_dictionaries() -> None:
    plain = pa.table({"a": ["x", None, "x"], "b": ["", "q", "ü"], "c": [None, "1", "22"]}, schema=from_avro(TEXTS))
    expected = encoded(plain, TEXTS)
    coded = plain.set_column(
        0, plain.schema.field("a").with_type(pa.dictionary(pa.int32(), pa.string())), plain["a"].dictionary_encode()
    )
    assert encoded(coded, TEXTS) == expected
    same = pa.table({"a": ["é", "é"], "b": ["b", "c"], "c": [None, None]}, schema=from_avro(TEXTS))
    assert encoded(same.select(["b"]), TEXTS, constants={"a": "é", "c": None}) == encoded(same, TEXTS)
    assert encode_records(record_type(TEXTS), {}, 2, {"a": None, "b": "", "c": "x"}).to_pylist() == [b"\0\0\0\2x"] * 2


def test_maps_with_something_under_nulls() -> None:
    kind = pa.map_(pa.string(), pa.field("value", pa.int64()))
    schema = pa.schema([("m", kind)])
    hidden = pa.MapArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), ["a", "b", "c", "d"], [1, 2, 3, 4], kind)
    buffers = [pa.array([True, False, True]).buffers()[1], hidden.buffers()[1]]
    maps = pa.Array.from_buffers(kind, 3, buffers, children=[hidden.values])
    plain = pa.array([[("a", 1)], None, [("d", 4)]], kind)
    record = record_type(to_avro(schema, "t"))
    for skip in range(3):
        assert encode_records(record, {"m": maps[skip:]}, 3 - skip).equals(
            encode_records(record, {"m": plain[skip:]}, 3 - skip)
        )


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(FormatError, match="'a' of the records is missing"):
        encode_records(record_type(TEXTS), {}, 0)
    with pytest.raises(FormatError, match="'b' are null"):
        encode_records(record_type(TEXTS), {"b": pa.array([None], pa.string())}, 1, {"a": None, "c": None})
    with pytest.raises(FormatError, match="has type int64"):
        encode_records(record_type(TEXTS), {"b": pa.array([1])}, 1, {"a": None, "c": None})
    with pytest.raises(FormatError, match="invalid value None"):
        encode_records(record_type(TEXTS), {}, 1, {"a": None, "b": None, "c": None})


def test_types_that_only_other_writers_have() -> None:
    fields = [
        {"name": "e", "type": ["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]},
        {"name": "nothing", "type": "null"},
        {"name": "f", "type": ["null", {"type": "fixed", "name": "F", "size": 3}]},
        {"name": "d", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}]},
        {"name": "w", "type": ["null", "string", "boolean", {"type": "array", "items": "long"}]},
        {"name": "n", "type": ["int", "null", "long"]},
        {"name": "x", "type": ["float", "double"]},
        {"name": "one", "type": ["string"]},
        {"name": "big", "type": {"type": "fixed", "name": "B", "size": 20, "logicalType": "decimal", "precision": 5}},
        {"name": "l", "type": {"type": "array", "items": ["null", "int", "string"]}},
    ]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    arrow = from_avro(schema)
    rows = [
        {"e": "B", "f": b"abc", "d": 12850, "w": {"member0": "t"}, "n": 5, "x": 1.5, "one": "o", "big": -1, "l": []},
        {
            "e": None,
            "f": None,
            "d": None,
            "w": None,
            "n": None,
            "x": -0.5,
            "one": "",
            "big": 0,
            "l": [None, {"member0": 3}],
        },
        {
            "e": "A",
            "f": b"\0\1\2",
            "d": -1,
            "w": {"member1": True},
            "n": -(2**40),
            "x": 0.0,
            "one": "ö",
            "big": 99999,
            "l": [{"member1": "z"}],
        },
        {
            "e": "A",
            "f": b"\0\1\2",
            "d": 255,
            "w": {"member2": [1, 2]},
            "n": 1,
            "x": 0.0,
            "one": "ö",
            "big": -99999,
            "l": [None],
        },
    ]
    for row in rows:
        row["d"] = None if row["d"] is None else __import__("decimal").Decimal(row["d"]).scaleb(-2)
    table = pa.Table.from_pylist(rows, schema=arrow)
    datums = encoded(table, schema)
    parsed = fastavro.parse_schema(json.loads(schema))
    back = [fastavro.schemaless_reader(io.BytesIO(datum), parsed) for datum in datums]
    assert [row["w"] for row in back] == ["t", None, True, [1, 2]]
    assert [row["l"] for row in back] == [[], [None, 3], ["z"], [None]]
    for name in ("e", "f", "d", "n", "x", "one", "big"):
        assert [row[name] for row in back] == table[name].to_pylist()
    body = b"".join(struct.pack(">i", len(datum)) + datum for datum in datums)
    assert decode_framed(memoryview(body), len(rows), schema).equals(table)
    with pytest.raises(FormatError, match="not one of A, B"):
        encoded(table.set_column(0, arrow.field("e"), [pa.array(["C"] * 4)]), schema)
    with pytest.raises(FormatError, match="3 bytes"):
        encoded(table.set_column(2, arrow.field("f"), [pa.array([b"abcd"] * 4)]), schema)
