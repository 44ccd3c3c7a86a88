"""Values of the record index."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.index.record_index_values import LOCATION_SCHEMA, encode_locations, estimate_file_group_count, locations_of
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD, decode, record_schema

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
    assert locations_of(decode(encode_locations(table, 9), record_schema(9))[RECORD_INDEX_PAYLOAD]).equals(table)


def test_file_groups_are_as_many_as_apache_hudi_makes() -> None:
    assert estimate_file_group_count(6_000_000, 10, 10_000) == 10
    assert estimate_file_group_count(10**9, 10, 10_000) == -(-2 * 10**9 // (2**30 // 48))
    assert estimate_file_group_count(10**13, 10, 10_000) == 10_000
    assert estimate_file_group_count(5, 3, 3) == 3
