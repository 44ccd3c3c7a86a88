"""Updates of some columns, of which the others are copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.format.base_file.parquet_writer import ParquetOptions
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.markers import Markers
from pyhudi.write.location_columns import ROW_POSITION
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.write_context import BaseFileOptions
from tests.properties import examples
from tests.unit.write.handles.file_groups import (
    FIRST,
    SECOND,
    SMALL_GROUPS,
    Group,
    column_chunks,
    data_files,
    group_rows,
)

KEPT = frozenset(("id", "tags"))


def _update(group: Group, position: int, ts: int | None) -> dict[str, Any]:
    """An update of a row with no values of the columns that are not assigned."""
    return {**group.row(position, f"k{position}", ts), "id": None}


@settings(deadline=None, max_examples=examples(30))
@given(
    changes=st.dictionaries(st.integers(0, 19), st.sampled_from([50, 100, 200, None]), min_size=1, max_size=20),
    by_event_time=st.booleans(),
    copies=st.booleans(),
)
def test_an_update_of_columns_equals_the_model(
    changes: dict[int, int | None], by_event_time: bool, copies: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys = [f"k{i}" for i in range(20)]
    # several row groups
    group = Group(tmp_path_factory.mktemp("table"), keys, files=BaseFileOptions(parquet=ParquetOptions(block_size=200)))
    assert pq.read_metadata(group.folder / group.path).num_row_groups > 1
    rules = MergeRules(("ts",) if by_event_time else ())
    incoming = [_update(group, position, ts) for position, ts in sorted(changes.items())]
    merged = group.merge(incoming, rules=rules, unassigned=KEPT, updates_columns=copies)
    wins = {p: ts for p, ts in changes.items() if not by_event_time or (ts or 0) >= 100}
    old = {r["id"]: r for r in group.rows}
    assert [r["id"] for r in merged["rows"]] == keys
    for position, row in enumerate(merged["rows"]):
        before = old[row["id"]]
        assert row["tags"] == before["tags"]
        assert (row[RECORD_KEY], row[PARTITION_PATH]) == (before[RECORD_KEY], "p")
        assert row["ts"] == wins.get(position, 100)
        assert f"p/{row[FILE_NAME]}" == merged["path"]
        assert row[COMMIT_TIME] == (SECOND if position in wins else FIRST)
        assert row[COMMIT_SEQNO].startswith(f"{SECOND}_3_") == (position in wins)
        assert (row[COMMIT_SEQNO] == before[COMMIT_SEQNO]) == (position not in wins)
    assert (merged["numUpdateWrites"], merged["numDeletes"], merged["numInserts"]) == (len(wins), 0, 0)
    assert (merged["numWrites"], merged["prevCommit"]) == (20, FIRST)
    size = (group.folder / merged["path"]).stat().st_size
    assert merged["fileSizeInBytes"] == merged["totalWriteBytes"] == size
    before, after = (read_footer(str(group.folder / path)) for path in (group.path, merged["path"]))
    assert (after.min_key, after.max_key) == (before.min_key, before.max_key) == ("k0", "k9")
    assert after.bloom_text == before.bloom_text
    markers = Markers(LocalStorage(group.folder), SECOND).list()
    assert markers["data_path"].to_pylist() == [merged["path"]]


def test_chunks_of_other_columns_are_copied(tmp_path: Path) -> None:
    group = Group(tmp_path, ["k0", "k1"], files=BaseFileOptions(parquet=ParquetOptions(codec="gzip")))
    merged = group.merge([_update(group, 1, 7)], unassigned=KEPT, updates_columns=True)
    metadata = pq.read_metadata(tmp_path / merged["path"]).row_group(0)
    codecs = {metadata.column(i).path_in_schema: metadata.column(i).compression for i in range(metadata.num_columns)}
    assert (codecs["id"], codecs["ts"], codecs[COMMIT_TIME], codecs[RECORD_KEY]) == ("GZIP", "ZSTD", "ZSTD", "GZIP")
    assert column_chunks(tmp_path, merged["path"], "id") == column_chunks(tmp_path, group.path, "id")


def test_row_groups_without_updates_are_copied_with_all_columns(tmp_path: Path) -> None:
    group = Group(tmp_path, [f"k{i:02}" for i in range(40)], files=SMALL_GROUPS)
    before = group_rows(group, group.path)
    position = before[0] + 1
    files = BaseFileOptions(parquet=ParquetOptions(codec="gzip", block_size=400))
    merged = group.merge([_update(group, position, 7)], files=files, unassigned=KEPT, updates_columns=True)
    assert [r["ts"] for r in merged["rows"]] == [7 if i == position else 100 for i in range(40)]
    assert group_rows(group, merged["path"]) == before
    old, new = (column_chunks(tmp_path, path, COMMIT_SEQNO) for path in (group.path, merged["path"]))
    assert [chunk in new for chunk in old] == [i != 1 for i in range(len(before))]


@pytest.mark.parametrize("case", ["column added", "type wider"])
def test_files_that_are_rewritten_as_a_whole(tmp_path: Path, case: str) -> None:
    group = Group(tmp_path, ["k0", "k1"])
    kind = pa.float64() if case == "type wider" else pa.int64()
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("tags", pa.list_(pa.string()))])
    if case == "column added":
        schema = schema.append(pa.field("new", pa.int32()))
    merged = group.merge([_update(group, 1, 7)], schema=schema, unassigned=KEPT | {"new"}, updates_columns=True)
    assert [(r["id"], r["ts"], r["tags"]) for r in merged["rows"]] == [
        ("k0", 100, ["k0", None]),
        ("k1", 7, ["k1", None]),
    ]


def test_an_update_of_columns_of_a_row_that_is_not_there(tmp_path: Path) -> None:
    group = Group(tmp_path, ["k0"])
    with pytest.raises(FormatError, match="has 1 rows, but row 4"):
        group.merge([_update(group, 4, 1)], unassigned=KEPT, updates_columns=True)
    assert data_files(tmp_path) == {group.path}


@pytest.mark.parametrize("how", ["no position", "unknown key"])
def test_updates_of_columns_without_a_row(tmp_path: Path, how: str) -> None:
    group = Group(tmp_path, ["k0"])
    row = {**_update(group, 0, 1), ROW_POSITION: None, RECORD_KEY: "k7"}
    keyed_write = {"keyed": KeyedWrite()} if how == "unknown key" else {}
    with pytest.raises(FormatError, match=r"1 updates of base file .* have no row there"):
        group.merge([row], unassigned=KEPT, updates_columns=True, **keyed_write)
    assert data_files(tmp_path) == {group.path}


def test_columns_of_a_file_whose_keys_have_two_orders(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "\U0001f600"])
    merged = group.merge([{**_update(group, 1, 7), RECORD_KEY: "\U0001f600"}], unassigned=KEPT, updates_columns=True)
    assert [(r["id"], r["ts"]) for r in merged["rows"]] == [("a", 100), ("\U0001f600", 7)]


def test_columns_of_a_damaged_file(tmp_path: Path) -> None:
    group = Group(tmp_path, ["k0", "k1"])
    file = tmp_path / group.path
    data = bytearray(file.read_bytes())
    column = pq.read_metadata(file).row_group(0).column(6)
    assert column.path_in_schema == "ts"
    begin = column.dictionary_page_offset or column.data_page_offset
    data[begin : begin + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    file.write_bytes(data)
    with pytest.raises(FormatError):
        group.merge([_update(group, 1, 1)], unassigned=KEPT, updates_columns=True)
    assert data_files(tmp_path) == {group.path}
