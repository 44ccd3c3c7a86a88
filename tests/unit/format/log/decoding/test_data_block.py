"""Data blocks into Arrow: the fast way, the general way and fastavro agree on any table; golden blocks."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from pyhudi.errors import FormatError
from pyhudi.format.log import BlockType, LogBlock, block_checksum, decode_matching, decode_records, scan_blocks
from pyhudi.format.log.decoding.avro_block import ProbedRecords, decode_avro
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from tests.unit.format import golden
from tests.unit.format.log.samples import block, datums_of, framed, golden_log_files, tables

SIMPLE = pa.table({"a": pa.array([1, None, 3], pa.int32()), "b": ["x", "y", None]})
SIMPLE_AVRO = (
    '{"type":"record","name":"r","fields":[{"name":"a","type":["null","int"],"default":null},'
    '{"name":"b","type":["null","string"],"default":null}]}'
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables())
def test_any_table_is_decoded_as_fastavro_encoded_it(case: tuple[pa.Table, str]) -> None:
    table, schema = case
    content = memoryview(framed(datums_of(table, schema)))
    for fast in (True, False):
        decoded = decode_avro(content, schema, fast=fast)
        decoded.validate(full=True)
        assert decoded.equals(table), fast
        some = list(reversed(table.column_names))[:2]
        assert decode_avro(content, schema, [*some, "absent"], fast=fast).equals(table.select(some))
    probed = ProbedRecords.from_block(content, schema, [*some, "absent"])
    assert probed.columns.equals(table.select(some))
    for wanted in (np.arange(0, table.num_rows, 2), np.arange(0)):
        assert probed.decode(wanted, schema, table.column_names).equals(table.take(pa.array(wanted)))


@pytest.mark.parametrize("fast", [True, False])
def test_not_a_number_and_signs_of_zero_are_kept(fast: bool) -> None:
    values = [float("nan"), -0.0, 0.0, float("inf")]
    schema = '{"type":"record","name":"r","fields":[{"name":"d","type":"double"}]}'
    content = framed(struct.pack("<d", value) for value in values)
    decoded = decode_avro(memoryview(content), schema, fast=fast)["d"].to_pylist()
    assert [struct.pack("<d", value) for value in decoded] == [struct.pack("<d", value) for value in values]


@pytest.mark.parametrize("fast", [True, False])
def test_types_that_only_other_writers_have(fast: bool) -> None:
    schema = json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [
                {"name": "e", "type": ["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]},
                {"name": "again", "type": ["E", "null"]},
                {"name": "nothing", "type": "null"},
                {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
                {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
                {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
                {"name": "s", "type": {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]}},
                {"name": "t", "type": ["null", "S"]},
                {"name": "m", "type": {"type": "map", "values": "null"}},
            ],
        }
    )
    rows: list[dict[str, Any]] = [
        {
            "e": "B",
            "again": None,
            "nothing": None,
            "f": b"abc",
            "u": "q",
            "d": b"\xff\x85",
            "s": {"x": 1},
            "t": None,
            "m": {},
        },
        {
            "e": None,
            "again": "A",
            "nothing": None,
            "f": b"\0\1\2",
            "u": "",
            "d": b"\x01",
            "s": {"x": 2},
            "t": {"x": 3},
            "m": {"k": None},
        },
    ]
    plain = json.loads(schema)
    plain["fields"][4]["type"] = "string"
    plain["fields"][5]["type"] = "bytes"
    parsed = fastavro.parse_schema(plain)
    datums = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        datums.append(out.getvalue())
    decoded = decode_avro(memoryview(framed(datums)), schema, fast=fast)
    assert decoded.schema.equals(from_avro(schema))
    expected = [row | {"m": list(row["m"].items())} for row in rows]
    assert [str(v) for v in decoded["d"].to_pylist()] == ["-1.23", "0.01"]
    assert decoded.drop_columns("d").to_pylist() == [{k: v for k, v in row.items() if k != "d"} for row in expected]


@pytest.mark.parametrize("table", golden.names())
def test_golden_blocks(table: str) -> None:
    for name, data in golden_log_files(table):
        if name.startswith(".commits_"):
            continue
        for found in scan_blocks(data):
            if found.type not in (BlockType.AVRO_DATA, BlockType.CDC_DATA, BlockType.PARQUET_DATA):
                continue
            records = decode_records(found)
            assert records.num_rows
            assert found.schema is not None
            assert records.schema.names == from_avro(found.schema).names
            assert records.schema.types == from_avro(found.schema).types
            if found.type is BlockType.CDC_DATA:
                continue
            times = set(records["_hoodie_commit_time"].to_pylist())
            # virtual keys have no meta columns
            assert times in ({found.instant}, {None})
            positions = found.positions()
            assert positions is None or len(positions) == len(records)
            part = decode_records(found, columns=["_hoodie_record_key", "_hoodie_commit_time"])
            assert part.equals(records.select(["_hoodie_record_key", "_hoodie_commit_time"]))


def _block(table: pa.Table, data_format: str, *, sealed: bool) -> LogBlock:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    avro = to_avro(table.schema, "r")
    content = sink.getvalue() if data_format == "parquet" else framed(datums_of(table, avro))
    kind = BlockType.PARQUET_DATA if data_format == "parquet" else BlockType.AVRO_DATA
    headers: dict[int, str] = {0: "1", 2: avro}
    if sealed:
        headers[block_checksum.BLOCK_IDENTIFIER] = block_checksum.block_identifier(kind, headers, [content])
    (found,) = scan_blocks(io.BytesIO(block(kind, headers, content)))
    return found


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_some_records_of_a_block(data_format: str, sealed: bool) -> None:
    """Records are chosen by some of their columns, and come with the others."""
    table = pa.table({"_hoodie_record_key": ["k0", "k1", "k2", "k3"], "a": [3, 1, 3, None], "b": ["x", "y", None, "z"]})
    found = _block(table, data_format, sealed=sealed)
    assert found.is_sealed == sealed
    seen: list[list[str]] = []

    def threes(probe: pa.Table) -> pa.Array:
        seen.append(probe.column_names)
        return pa.array(np.flatnonzero(pc.fill_null(pc.equal(probe["a"], 3), False).to_numpy()))

    chosen = decode_matching(found, threes, ["a", "absent"], columns=["b", "absent", "a"])
    assert chosen.to_pydict() == {"b": ["x", None], "a": [3, 3]}
    assert seen == [["a"]]
    assert decode_matching(found, lambda _: None, ["a"], columns=["b"]).equals(table.select(["b"]))
    none = decode_matching(found, lambda _: pa.array([], pa.int64()), ["a"], columns=["b"])
    assert none.equals(table.select(["b"]).slice(0, 0))


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_blocks_without_the_wanted_columns_have_their_number_of_records(data_format: str, sealed: bool) -> None:
    found = _block(pa.table({"b": ["x", None, "z"]}), data_format, sealed=sealed)
    for columns in (["absent"], []):
        assert decode_records(found, columns=columns).shape == (3, 0)
        assert decode_matching(found, lambda _: None, ["b"], columns=columns).shape == (3, 0)
        assert decode_matching(found, lambda _: pa.array([0, 2]), ["b"], columns=columns).shape == (2, 0)


def test_parquet_blocks() -> None:
    sink = io.BytesIO()
    pq.write_table(SIMPLE, sink)
    (found,) = scan_blocks(block(5, {0: "1", 2: SIMPLE_AVRO}, sink.getvalue()))
    assert decode_records(found).equals(SIMPLE)
    assert decode_records(found, columns=["b", "no", "a"]).equals(SIMPLE.select(["b", "a"]))
    (broken,) = scan_blocks(block(5, {0: "1", 2: SIMPLE_AVRO}, sink.getvalue()[:-5]))
    with pytest.raises(FormatError):
        decode_records(broken)


@pytest.mark.parametrize("fast", [True, False])
def test_lengths_that_do_not_fit_are_refused(fast: bool) -> None:
    datums = datums_of(SIMPLE, SIMPLE_AVRO)
    content = framed(datums)
    more = [content[:-1], content + b"\0", framed(datums[:2]) + datums[2], framed([datums[0] + b"\0", *datums[1:]])]
    more += [struct.pack(">ii", 3, 2) + content[8:], struct.pack(">ii", 3, 2**31 - 1) + content[8:]]
    # one record takes what another one lacks
    more.append(framed([datums[0] + datums[1][:1], datums[1][1:], datums[2]]))
    for broken in more:
        with pytest.raises(FormatError):
            decode_avro(memoryview(broken), SIMPLE_AVRO, fast=fast)


def test_blocks_without_records_or_schema_are_refused() -> None:
    for broken in (block(0, {0: "1"}, b""), block(3, {0: "1"}, framed([])), block(4, {0: "1"}, b"DATABLK*")):
        (found,) = scan_blocks(broken)
        with pytest.raises(FormatError):
            decode_records(found)
