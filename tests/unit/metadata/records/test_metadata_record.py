"""Records of real metadata tables, decoded and encoded again."""

from __future__ import annotations

import io
import json

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.metadata.records import metadata_record
from pyhudi.metadata.records.metadata_record import PAYLOADS, RecordType, decode, encode, payload_type, record_schema
from tests.properties import examples
from tests.unit.metadata.samples import GoldenFile, golden_files

KINDS = {
    "files": {1, 2},
    "column_stats": {3},
    "bloom_filters": {4},
    "record_index": {5},
    "partition_stats": {6},
}


def one_by_one(file: GoldenFile) -> list[dict]:
    schema = fastavro.parse_schema(json.loads(file.schema))
    values = file.entries()["value"].to_pylist()
    return [fastavro.schemaless_reader(io.BytesIO(value), schema, None) for value in values]


def plain(value: object) -> object:
    """Arrow's values as fastavro has them: unions without their members, maps as dicts."""
    if isinstance(value, list) and all(isinstance(v, tuple) for v in value):
        return {key: plain(inner) for key, inner in value}
    if isinstance(value, dict):
        if value and all(name.startswith("member") for name in value):
            set_ones = [plain(inner) for inner in value.values() if inner is not None]
            return set_ones[0] if set_ones else None
        return {key: plain(inner) for key, inner in value.items()}
    return value


def test_golden_files_are_decoded():
    seen = set()
    for file in golden_files():
        table = decode(file.entries()["value"], file.schema)
        expected = one_by_one(file)
        assert table.num_rows == len(expected)
        for name in ("type", *PAYLOADS):
            if name not in table.column_names:
                assert all(name not in row for row in expected)
                continue
            ours = [plain(value) for value in table[name].to_pylist()]
            assert ours == [row[name] for row in expected], (file.table, file.partition, file.name, name)
        kinds = set(table["type"].to_pylist())
        assert kinds <= KINDS.get(file.partition, {3, 4, 5, 6, 7})
        seen |= kinds
    assert seen == {1, 2, 3, 4, 5, 6, 7}


def test_golden_files_are_encoded_as_they_were():
    count = 0
    for file in golden_files():
        if file.table.startswith("v5_"):  # read, never written
            continue
        values = file.entries()["value"].combine_chunks()
        table = decode(values, file.schema).combine_chunks()
        names = {row["_hoodie_file_name"] for row in one_by_one(file)}
        name = names.pop() if len(names) == 1 else None
        assert not names
        for number in pc.unique(table["type"]).to_pylist():
            kind = RecordType(number)
            mine = pc.equal(table["type"], number)
            payload = table.filter(mine)[kind.payload].combine_chunks()
            assert encode(kind, payload, file.version, file_name=name).equals(values.filter(mine.combine_chunks()))
            count += len(payload)
    assert count > 400


def test_some_fields_alone():
    for file in golden_files():
        values = file.entries()["value"]
        whole = decode(values, file.schema).combine_chunks()
        wanted = {"ColumnStatsMetadata": {"fileName": None, "maxValue": None}, "filesystemMetadata": None}
        part = decode(values, file.schema, wanted)
        assert part.column_names == ["type", "filesystemMetadata", "ColumnStatsMetadata"]
        assert part["filesystemMetadata"].to_pylist() == whole["filesystemMetadata"].to_pylist()
        for name in ("fileName", "maxValue"):
            column = pc.struct_field(part["ColumnStatsMetadata"], name)
            assert column.to_pylist() == pc.struct_field(whole["ColumnStatsMetadata"], name).to_pylist()


def test_a_record_index_value_of_apache_hudi():
    """The example of docs/format/metadata.md, 2.1, completed with numbers."""
    payload = pa.table(
        {
            "partitionName": ["year=1992"],
            "fileIdHighBits": [-1619871104603763322],
            "fileIdLowBits": [-8915571471539409838],
            "fileIndex": pa.array([0], pa.int32()),
            "fileId": [""],
            "instantTime": [1795253387775],
        }
    )
    value = encode(RecordType.RECORD_INDEX, payload, 9)[0].as_py()
    assert value.startswith(bytes.fromhex("0000000000 00 0a 000000 02 02 12") + b"year=1992")
    row = fastavro.schemaless_reader(io.BytesIO(value), json.loads(record_schema(9)), None)["recordIndexMetadata"]
    assert {**row, "position": 0} == {**payload.to_pylist()[0], "fileIdEncoding": 0, "position": 0}
    assert encode(RecordType.RECORD_INDEX, payload, 6)[0].as_py() == value[:-2]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_schemas(version: int):
    schema = json.loads(record_schema(version))
    assert schema["name"] == "HoodieMetadataRecord"
    assert [f["name"] for f in schema["fields"]][5:7] == ["key", "type"]
    own = json.loads(record_schema(version, meta_columns=False))
    assert own["fields"] == schema["fields"][5:]


def test_unknown_versions_and_kinds():
    with pytest.raises(FormatError, match="version 7"):
        record_schema(7)
    with pytest.raises(FormatError, match="no field SecondaryIndexMetadata"):
        payload_type(RecordType.SECONDARY_INDEX, 6)
    with pytest.raises(FormatError, match="not records of a metadata table"):
        decode(pa.array([b""]), '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}')


SIZES = st.integers(0, 2**62)
NAMES = st.text(max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.dictionaries(NAMES, st.tuples(SIZES, st.booleans()), max_size=5), max_size=80))
def test_file_lists_come_back(maps: list[dict]):
    rows = [[(name, {"size": size, "isDeleted": gone}) for name, (size, gone) in m.items()] for m in maps]
    payload = pa.array(rows, payload_type(RecordType.FILES, 9))
    values = encode(RecordType.FILES, payload, 9)
    assert decode(values, record_schema(9), ["filesystemMetadata"])["filesystemMetadata"].to_pylist() == rows


def test_one_list_of_many_files():
    rows = [[(f"file-{i:06d}.parquet", {"size": i * 97, "isDeleted": False}) for i in range(20_000)]]
    values = encode(RecordType.FILES, pa.array(rows, payload_type(RecordType.FILES, 9)), 9)
    assert decode(values, record_schema(9))["filesystemMetadata"].to_pylist() == rows


def test_lists_in_blocks_with_their_bytes():
    """Avro's other way to write a map: a negative count, followed by the bytes of the block."""
    item = b"\x02a\x04\x00"
    head = bytes(5) + b"\0" + b"\x04"
    for count in (1, 3):
        blocks = b"\x01" + bytes([2 * len(item)]) + item + b"\x02" + b"\x02b\x06\x01" + b"\0"
        values = pa.array([head + b"\x02" + blocks + bytes(4)] * count * 40)
        found = decode(values, record_schema(9))["filesystemMetadata"].to_pylist()
        expected = [("a", {"size": 2, "isDeleted": False}), ("b", {"size": 3, "isDeleted": True})]
        assert found == [expected] * count * 40


def test_broken_values():
    """Every cut is noticed, and no change of a byte does anything but another value or an error."""
    file = next(f for f in golden_files() if f.partition == "column_stats" and f.version == 9)
    value = file.entries()["value"][0].as_py()
    for end in range(len(value)):
        with pytest.raises(FormatError):
            decode(pa.array([value, value[:end]]), file.schema)
    with pytest.raises(FormatError):
        decode(pa.array([value + b"\0"]), file.schema)
    with pytest.raises(FormatError, match="null"):
        decode(pa.array([value, None]), file.schema)
    random = np.random.default_rng(1)
    for at in range(len(value)):
        broken = bytearray(value)
        broken[at] ^= int(random.integers(1, 256))
        try:
            decode(pa.array([bytes(broken)]), file.schema).validate(full=True)
        except FormatError:
            continue


def test_fields_may_come_in_any_order():
    payload = pa.table(
        {"isDeleted": [False], "timestamp": ["1"], "type": ["SIMPLE"], "bloomFilter": [b"x"], "more": [1]}
    )
    back = decode(encode(RecordType.BLOOM_FILTER, payload, 9), record_schema(9))[
        metadata_record.BLOOM_FILTER_PAYLOAD
    ].to_pylist()
    assert back == [{"type": "SIMPLE", "timestamp": "1", "bloomFilter": b"x", "isDeleted": False}]
    with pytest.raises(FormatError):
        encode(RecordType.BLOOM_FILTER, pa.table({"isDeleted": ["no"]}), 9)
