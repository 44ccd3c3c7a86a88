"""Locations in values of the record index."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD, decode, record_schema
from pyhudi.metadata.records.record_locations import LOCATION_SCHEMA, decode_locations, encode_locations

FILE_ID = "e9850fd0-142c-4d86-8445-86fbbd496c52-0"


def _table(rows: list[tuple[str, str, int]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, LOCATION_SCHEMA, strict=True)], schema=LOCATION_SCHEMA
    )


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_place_is_written_as_apache_hudi_writes_it(version: int) -> None:
    values = encode_locations(_table([("p0", FILE_ID, 1795253387775)]), version)
    found = decode(values, record_schema(version))[RECORD_INDEX_PAYLOAD][0].as_py()
    assert found["fileIdHighBits"] == -1619871104603763322
    assert found["fileIdLowBits"] == -8915571471539409838
    assert (found["fileIndex"], found["fileId"], found["fileIdEncoding"]) == (0, "", 0)
    assert (found["partitionName"], found["instantTime"]) == ("p0", 1795253387775)


_IDS = st.one_of(
    st.uuids().map(str),
    st.uuids().map(lambda u: f"{u}-12"),
    st.sampled_from(["x", "", FILE_ID.upper(), f"{FILE_ID}-07"]),
)


@given(st.lists(st.tuples(st.sampled_from(["", "p", "a=é/b"]), _IDS, st.integers(0, 2**45)), max_size=20))
def test_places_come_back(rows: list[tuple[str, str, int]]) -> None:
    table = _table(rows)
    assert decode_locations(decode(encode_locations(table, 9), record_schema(9))[RECORD_INDEX_PAYLOAD]).equals(table)


def test_locations_without_a_number_or_with_an_unknown_encoding() -> None:
    kind = record_schema(9)
    values = encode_locations(_table([("p", FILE_ID, 1)]), 9)
    (row,) = decode(values, kind)[RECORD_INDEX_PAYLOAD].to_pylist()
    rows = [row | {"fileIndex": None}, row | {"fileIdEncoding": 2, "fileId": "f-1"}, row | {"fileIdEncoding": None}]
    payload = pa.array(rows, decode(values, kind)[RECORD_INDEX_PAYLOAD].type)
    assert decode_locations(payload)["file_id"].to_pylist() == [FILE_ID[:-2], "f-1", FILE_ID]
    with pytest.raises(FormatError, match="has no location"):
        decode_locations(pa.array([row, None], payload.type))
