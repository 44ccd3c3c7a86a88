from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from operator import or_
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import SYNC_SIZE, read_container
from pyhudi.timeline import commit_metadata
from pyhudi.timeline.commit_metadata import (
    REPLACED_SCHEMA,
    WRITE_STAT_SCHEMA,
    CommitMetadata,
    decode_commit,
    write_stats,
)
from pyhudi.timeline.encoding import commit_avro
from pyhudi.timeline.encoding.jackson_json import pretty
from tests.properties import examples

NOTHING = WRITE_STAT_SCHEMA.empty_table()
LONG = st.integers(0, 2**62)
TEXT = st.text(max_size=12)
ROW = st.fixed_dictionaries(
    {
        "fileId": TEXT,
        "path": TEXT | st.none(),
        "partitionPath": st.sampled_from(["", "a", "b=1/c=é", "x y"]),
        "prevCommit": TEXT,
        "numWrites": LONG,
        "numInserts": LONG,
        "totalWriteBytes": LONG,
        "fileSizeInBytes": LONG,
    },
    optional={
        "cdcStats": st.dictionaries(TEXT, LONG, max_size=2),
        "runtimeStats": st.fixed_dictionaries(
            {"totalScanTime": LONG, "totalUpsertTime": LONG, "totalCreateTime": LONG}
        ),
        "minEventTime": LONG,
    },
)
LOG_FILE = st.fixed_dictionaries(
    {"logVersion": st.integers(0, 9), "logOffset": LONG, "baseFile": TEXT, "logFiles": st.lists(TEXT, max_size=3)}
)
METADATA = st.builds(
    CommitMetadata,
    operation=st.sampled_from(["UPSERT", "INSERT", "DELETE", "INSERT_OVERWRITE"]),
    stats=st.lists(st.builds(dict, ROW) | st.builds(or_, ROW, LOG_FILE), max_size=5).map(write_stats),
    extra=st.dictionaries(TEXT, TEXT, max_size=3),
    compacted=st.booleans(),
    replaced=st.none()
    | st.lists(st.fixed_dictionaries({"partition": TEXT, "file_id": TEXT}), max_size=4).map(
        lambda rows: pa.Table.from_pylist(rows, schema=REPLACED_SCHEMA)
    ),
)


def by_partition(table: pa.Table, column: str) -> list[dict[str, object]]:
    """Rows grouped as files group them: partitions in order of first appearance."""
    rows = table.to_pylist()
    order = list(dict.fromkeys(row[column] for row in rows))
    return sorted(rows, key=lambda row: order.index(row[column]))


@settings(max_examples=examples(200), deadline=None)
@given(METADATA, st.sampled_from([6, 8, 9]))
def test_nothing_is_lost(metadata: CommitMetadata, version: int):
    again = decode_commit(metadata.encode(version, "replacecommit"))
    assert again.operation == metadata.operation
    assert again.extra == metadata.extra
    assert again.compacted == metadata.compacted
    assert again.stats.schema == WRITE_STAT_SCHEMA
    assert by_partition(again.stats, "partitionPath") == by_partition(metadata.stats, "partitionPath")
    assert (again.replaced is None) == (metadata.replaced is None)
    if metadata.replaced is not None:
        assert by_partition(again.replaced, "partition") == by_partition(metadata.replaced, "partition")


@given(METADATA, st.sampled_from(["commit", "replacecommit"]))
@settings(max_examples=examples(100), deadline=None)
def test_columns_and_rows_give_the_same_bytes(metadata: CommitMetadata, action: str):
    with patch.object(commit_avro, "FEW", 0):
        by_columns = metadata.encode(9, action)
    by_rows = metadata.encode(9, action)
    assert by_columns.split(by_columns[-SYNC_SIZE:]) == by_rows.split(by_rows[-SYNC_SIZE:])


@given(METADATA, st.sampled_from(["commit", "replacecommit"]))
@settings(max_examples=examples(100), deadline=None)
def test_columns_and_rows_are_decoded_alike(metadata: CommitMetadata, action: str):
    data = metadata.encode(9, action)
    by_rows = decode_commit(data)
    with patch.object(commit_metadata, "LARGE", 0):
        by_columns = decode_commit(data)
    assert by_columns.stats.equals(by_rows.stats)
    assert replace(by_columns, stats=NOTHING, replaced=None) == replace(by_rows, stats=NOTHING, replaced=None)
    assert (by_columns.replaced is None) == (by_rows.replaced is None)
    assert by_rows.replaced is None or by_rows.replaced.equals(by_columns.replaced)


@given(METADATA, st.data())
@settings(max_examples=examples(100), deadline=None)
def test_damaged_columns_are_an_error_of_ours(metadata: CommitMetadata, data: st.DataObject):
    content = bytearray(metadata.encode(9, "commit"))
    content[data.draw(st.integers(4, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with patch.object(commit_metadata, "LARGE", 0), contextlib.suppress(FormatError):
        decode_commit(bytes(content))


@given(METADATA)
@settings(deadline=None)
def test_version_6_is_json(metadata: CommitMetadata):
    assert json.loads(metadata.encode(6, "commit"))["operationType"] == metadata.operation


def test_only_a_completed_replacecommit_names_what_it_replaces():
    replaced = pa.table({"partition": ["a"], "file_id": ["f"]}, schema=REPLACED_SCHEMA)
    metadata = CommitMetadata("INSERT_OVERWRITE", replaced=replaced)
    assert decode_commit(metadata.encode(9, "replacecommit")).replaced == replaced
    assert decode_commit(metadata.encode(9, "clustering")).replaced == replaced
    assert decode_commit(metadata.encode(9, "commit")).replaced is None
    schema, _ = read_container(metadata.encode(9, "replacecommit"))
    assert schema["name"] == "HoodieReplaceCommitMetadata"
    schema, _ = read_container(CommitMetadata("INSERT_OVERWRITE").encode(9, "replacecommit"))
    assert schema["name"] == "HoodieCommitMetadata"


def test_a_partition_that_replaces_nothing_is_kept():
    replaced = pa.table({"partition": ["a"], "file_id": [None]}, schema=REPLACED_SCHEMA)
    data = CommitMetadata("INSERT_OVERWRITE", replaced=replaced).encode(6, "replacecommit")
    assert json.loads(data)["partitionToReplaceFileIds"] == {"a": []}
    assert decode_commit(data).replaced == replaced


def test_missing_statistics_take_hudis_defaults():
    row = write_stats([{"fileId": "f", "partitionPath": "p", "path": "p/x.parquet"}]).to_pylist()[0]
    assert row["prevCommit"] == "null"
    assert row["numWrites"] == 0
    assert row["cdcStats"] is None
    assert row["logVersion"] is None


def test_statistics_from_a_partial_table():
    part = pa.table({"path": ["a/x", "a/y"], "numWrites": pa.array([1, None], pa.int32())})
    stats = write_stats(part)
    assert stats.schema == WRITE_STAT_SCHEMA
    assert stats["numWrites"].to_pylist() == [1, 0]
    assert stats["prevCommit"].to_pylist() == ["null", "null"]


def test_a_workload_profile_has_no_partition_inside():
    profile = CommitMetadata("UPSERT", write_stats([{"partitionPath": "a", "numInserts": 3}]))
    stat = json.loads(profile.encode(6, "commit"))["partitionToWriteStats"]["a"][0]
    assert stat["partitionPath"] is None
    assert stat["fileId"] == ""
    assert stat["numInserts"] == 3
    assert decode_commit(profile.encode(9, "commit")).stats["partitionPath"].to_pylist() == ["a"]


def test_the_schema_of_the_write():
    assert CommitMetadata("UPSERT", extra={"schema": "S"}).schema_json == "S"
    assert CommitMetadata("UPSERT", extra={"schema": ""}).schema_json is None
    assert CommitMetadata("UPSERT").schema_json is None


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b'"x"', b"{", b"Obj\x01", b"Obj\x01" + b"\x00" * 40])
def test_what_is_no_metadata(data: bytes):
    with pytest.raises(FormatError):
        decode_commit(data)


def test_a_damaged_schema_does_not_fill_the_memory():
    stats = write_stats([{"fileId": f"f{i}", "partitionPath": "p", "path": f"p/x{i}.parquet"} for i in range(40)])
    raw = CommitMetadata("UPSERT", stats).encode(9, "commit")
    damaged = raw.replace(b'"name":"HoodieWriteStat","fields"', b'"name":"HoodieWriteStat","fgelds"')
    assert damaged != raw
    with pytest.raises(FormatError, match="without content"):
        decode_commit(damaged)


@settings(max_examples=examples(300), deadline=None)
@given(METADATA, st.sampled_from([6, 9]), st.data())
def test_damage_is_an_error_of_ours_or_goes_unnoticed(metadata: CommitMetadata, version: int, data: st.DataObject):
    raw = bytearray(metadata.encode(version, "commit"))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError):
        decode_commit(bytes(raw))


@given(
    st.recursive(st.none() | st.booleans() | LONG | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_pretty_json_is_json(value: object):
    assert json.loads(pretty(value)) == value


def test_pretty_json_looks_like_jacksons():
    value = {"a": {}, "b": [], "c": [{"d": None}, {"e": 1}], "f": ["x", "y"], "g": 'q"\\\u001f\né'}
    assert pretty(value) == (
        '{\n  "a" : { },\n  "b" : [ ],\n  "c" : [ {\n    "d" : null\n  }, {\n    "e" : 1\n  } ],\n'
        '  "f" : [ "x", "y" ],\n  "g" : "q\\"\\\\\\u001F\\né"\n}'
    )
