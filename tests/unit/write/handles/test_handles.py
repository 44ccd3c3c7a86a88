"""Write tasks without Spark: what they leave in storage, against plain dicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError, TransactionError
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.format.base_file.parquet_writer import ParquetOptions
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.storage import LocalStorage
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.write_gate import WriteGate
from pyhudi.write.handles import bulk_insert_handle
from pyhudi.write.location_columns import BASE_PATH, DELETE, FILE_ID, ROW
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.write_context import BaseFileOptions, TaskId, WriteContext
from pyhudi.write.tasks.write_tasks import bulk_insert_task, upsert_task
from pyhudi.write.write_status import decode_stats
from tests.properties import examples
from tests.unit.write.handles.contexts import write_context

FIRST, SECOND = "20260101000000000", "20260102000000000"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("tags", pa.list_(pa.string()))])
TASK = TaskId(3, 5, 7)
KEYED = pa.schema([*SCHEMA, (RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())])
TAGGED = pa.schema([*KEYED, (DELETE, pa.bool_()), (FILE_ID, pa.string()), (BASE_PATH, pa.string()), (ROW, pa.int64())])


def context(folder: Path, instant: str = FIRST, **more: Any) -> WriteContext:
    storage = LocalStorage(folder)
    WriteGate(storage, instant).open()
    return write_context(storage, instant, more.pop("schema", SCHEMA), **more)


def keyed(key: str, partition: str, ts: int = 0) -> dict[str, Any]:
    return {"id": key, "ts": ts, "tags": [key, None], RECORD_KEY: key, PARTITION_PATH: partition}


def batches(rows: list[dict[str, Any]], schema: pa.Schema = KEYED, size: int = 100) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(rows[start : start + size], schema)


def stored(folder: Path, stats: pa.Table) -> list[dict[str, Any]]:
    return [
        row for path in stats["path"].to_pylist() for row in pq.read_table(folder / path, partitioning=None).to_pylist()
    ]


def data_files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*.parquet")}


# --- new files -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(25))
@given(
    rows=st.lists(st.integers(0, 6), min_size=1, max_size=300),
    limit=st.sampled_from([1, 3, 64]),
    buffer=st.sampled_from([1, 10_000_000]),
    in_order=st.booleans(),
)
def test_a_bulk_insert_writes_every_row_once(
    rows: list[int], limit: int, buffer: int, in_order: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("table")
    partitions = sorted(rows) if in_order else rows
    written = [keyed(f"k{i}", f"p={p}") for i, p in enumerate(partitions)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk_insert_handle, "MAX_OPEN_FILES", limit)
        patch.setattr(bulk_insert_handle, "_CHUNK_ROWS", 50)
        status = bulk_insert_task(
            batches(written, size=20), context(folder, buffer_size=buffer), TASK, sorted_input=in_order
        )
    stats = decode_stats([status])
    found = stored(folder, stats)
    assert data_files(folder) == set(stats["path"].to_pylist())
    assert sorted((r["id"], r[PARTITION_PATH]) for r in found) == sorted((r["id"], r[PARTITION_PATH]) for r in written)
    assert len({r[COMMIT_SEQNO] for r in found}) == len(found)
    assert all(r[COMMIT_SEQNO].startswith(f"{FIRST}_3_") and r[COMMIT_TIME] == FIRST for r in found)
    assert all(f"{r[PARTITION_PATH]}/{r[FILE_NAME]}" in data_files(folder) for r in found)
    assert stats.num_rows == len(set(rows)), "one file for each partition"
    assert pc.sum(stats["numInserts"]).as_py() == pc.sum(stats["numWrites"]).as_py() == len(rows)
    markers = Markers(LocalStorage(folder), FIRST).list()
    assert set(markers["data_path"].to_pylist()) == data_files(folder)
    assert set(markers["io_type"].to_pylist()) == {"CREATE"}
    for partition in {r[PARTITION_PATH] for r in written}:
        text = (folder / partition / ".hoodie_partition_metadata").read_text()
        assert f"commitTime={FIRST}" in text
        assert "partitionDepth=1" in text
    again = bulk_insert_task(batches(written, size=20), context(folder), TaskId(3, 5, 8), sorted_input=in_order)
    assert decode_stats([again])["fileId"].to_pylist() == stats["fileId"].to_pylist(), "the same in every attempt"


def test_files_roll_over_at_their_size(tmp_path: Path) -> None:
    rows = [keyed(f"{i:06d}" * 4, "") for i in range(60_000)]
    limit = 300_000
    stats = decode_stats(
        [
            bulk_insert_task(
                batches(rows, size=3000),
                context(tmp_path, files=BaseFileOptions(bloom=None, max_size=limit)),
                TASK,
            )
        ]
    )
    sizes = stats["fileSizeInBytes"].to_pylist()
    assert len(sizes) > 1
    assert max(sizes) < 1.2 * limit
    assert sorted(sizes)[1] > 0.5 * limit, "only the last file is small"
    assert sorted(int(i.rsplit("-", 1)[1]) for i in stats["fileId"].to_pylist()) == list(range(len(sizes)))
    assert len(stored(tmp_path, stats)) == len(rows)


def test_no_rows_no_files(tmp_path: Path) -> None:
    assert decode_stats([bulk_insert_task([], context(tmp_path), TASK)]).num_rows == 0
    assert decode_stats([upsert_task([], context(tmp_path), TASK)]).num_rows == 0
    assert not data_files(tmp_path)


def test_virtual_keys_leave_meta_columns_null(tmp_path: Path) -> None:
    stats = decode_stats(
        [bulk_insert_task(batches([keyed("a", "p")]), context(tmp_path, populate_meta_fields=False), TASK)]
    )
    row = stored(tmp_path, stats)[0]
    assert row["id"] == "a"
    assert [row[name] for name in (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)] == [None] * 5
    assert read_footer(str(tmp_path / stats["path"][0].as_py())).bloom_text is None


# --- merging ---------------------------------------------------------------------------------------------------------


class Group:
    """A base file with a list of rows as its model."""

    def __init__(self, folder: Path, keys: list[str], **more: Any) -> None:
        self.folder = folder
        rows = [keyed(key, "p", ts=100) for key in keys]
        task = TaskId(len(data_files(folder)), 5, 7)  # attempts at the same task would make the same file group
        stats = decode_stats([bulk_insert_task(batches(rows), context(folder, **more), task)])
        assert stats.num_rows == 1
        self.path = stats["path"][0].as_py()
        self.file_id = stats["fileId"][0].as_py()
        self.rows = stored(folder, stats)

    def row(self, position: int | None, key: str, ts: int | None, delete: bool = False) -> dict[str, Any]:
        place = {FILE_ID: self.file_id, BASE_PATH: self.path, ROW: position, DELETE: delete}
        return {"id": key, "ts": ts, "tags": None, RECORD_KEY: key, PARTITION_PATH: "p", **place}

    def merge(self, rows: list[dict[str, Any]], size: int = 3, **more: Any) -> dict[str, Any]:
        schema = more.pop("incoming", TAGGED)
        status = upsert_task(batches(rows, schema, size), context(self.folder, SECOND, **more), TASK)
        stats = decode_stats([status])
        assert stats.num_rows == 1
        return {**stats.to_pylist()[0], "rows": stored(self.folder, stats)}


Changes = st.dictionaries(
    st.integers(0, 19), st.tuples(st.sampled_from([50, 100, 200, None]), st.booleans()), max_size=20
)


@settings(deadline=None, max_examples=examples(40))
@given(
    changes=Changes,
    inserts=st.integers(0, 5),
    by_event_time=st.booleans(),
    hard=st.booleans(),
    block_size=st.sampled_from([200, 10_000]),
)
def test_a_merge_equals_the_model(
    changes: dict[int, tuple[int | None, bool]],
    inserts: int,
    by_event_time: bool,
    hard: bool,
    block_size: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if not changes and not inserts:
        return
    files = BaseFileOptions(parquet=ParquetOptions(block_size=block_size))
    group = Group(tmp_path_factory.mktemp("table"), [f"k{i}" for i in range(20)], files=files)
    incoming = [group.row(p, f"k{p}", ts, delete) for p, (ts, delete) in sorted(changes.items())]
    incoming += [group.row(None, f"n{i}", 1) for i in range(inserts)]
    rules = MergeRules(("ts",) if by_event_time else ())
    merged = group.merge(incoming, rules=rules, hard_deletes=hard, files=files)

    expected: dict[str, tuple[int | None, str]] = {r["id"]: (r["ts"], FIRST) for r in group.rows}
    updates = deletes = 0
    for position, (ts, delete) in changes.items():
        unconditional = not by_event_time or hard or (delete and ts is None)
        if not unconditional and (ts or 0) < 100:
            continue
        if delete:
            deletes += 1
            del expected[f"k{position}"]
        else:
            updates += 1
            expected[f"k{position}"] = (ts, SECOND)
    expected |= {f"n{i}": (1, SECOND) for i in range(inserts)}

    assert {r["id"]: (r["ts"], r[COMMIT_TIME]) for r in merged["rows"]} == expected
    assert len(merged["rows"]) == len(expected) == merged["numWrites"]
    assert (merged["numUpdateWrites"], merged["numDeletes"], merged["numInserts"]) == (updates, deletes, inserts)
    assert merged["prevCommit"] == FIRST
    assert merged["prevBaseFile"] == group.path.split("/")[1]
    old = {r["id"]: r[COMMIT_SEQNO] for r in group.rows}
    for row in merged["rows"]:
        assert f"p/{row[FILE_NAME]}" == merged["path"]
        if row[COMMIT_TIME] == FIRST:
            assert row[COMMIT_SEQNO] == old[row["id"]], "what is not touched keeps its number"
        else:
            assert row[COMMIT_SEQNO].startswith(f"{SECOND}_3_")
    footer = read_footer(str(group.folder / merged["path"]))
    bloom = footer.bloom_filter()
    assert bloom is not None
    assert pc.all(bloom.might_contain(pa.array(sorted(expected), pa.string()))).as_py() in (True, None)
    if expected:
        assert (footer.min_key, footer.max_key) == (min(expected), max(expected))


def test_a_key_that_is_there_twice_is_updated_twice(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "b", "a"])
    merged = group.merge([group.row(0, "a", 5), group.row(2, "a", 5)])
    assert [(r["id"], r["ts"]) for r in merged["rows"]] == [("a", 5), ("b", 100), ("a", 5)]


def test_repeated_updates_of_one_row_merge_among_themselves(tmp_path: Path) -> None:
    for ordering, left in ((("ts",), 300), ((), 200)):
        group = Group(tmp_path / str(left), ["a", "b"])
        rows = [
            group.row(0, "a", 300),
            group.row(0, "a", 200),
            group.row(1, "b", 300),
            group.row(1, "b", 400, delete=True),
        ]
        assert [(r["id"], r["ts"]) for r in group.merge(rows, rules=MergeRules(ordering))["rows"]] == [("a", left)]


def test_a_file_without_rows_stays_a_file(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "b"])
    merged = group.merge([group.row(0, "a", 1, delete=True), group.row(1, "b", 1, delete=True)])
    assert merged["rows"] == []
    assert (merged["numWrites"], merged["numDeletes"]) == (0, 2)
    assert merged["path"] in data_files(tmp_path)


def test_old_rows_take_the_new_columns(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "b"])
    wider = pa.schema([("id", pa.string()), ("ts", pa.float64()), ("tags", pa.list_(pa.string())), ("new", pa.int32())])
    incoming = pa.schema([*wider, *TAGGED.remove(2).remove(1).remove(0)])
    row = {**group.row(1, "b", None), "ts": 1.5, "new": 7}
    merged = group.merge([row], schema=wider, incoming=incoming)
    assert [(r["id"], r["ts"], r["new"]) for r in merged["rows"]] == [("a", 100.0, None), ("b", 1.5, 7)]


def test_an_update_of_a_row_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a"])
    with pytest.raises(FormatError, match="has 1 rows, but row 4"):
        group.merge([group.row(4, "a", 1)])
    assert data_files(tmp_path) == {group.path}


def test_a_row_that_is_somewhere_is_found_by_its_key_or_an_error(tmp_path: Path) -> None:
    def incoming(group: Group) -> list[dict[str, Any]]:
        return [group.row(-1, "b", 1), group.row(None, "c", 2)]

    group = Group(tmp_path / "positions", ["a", "b"])
    with pytest.raises(FormatError, match="has no position"):
        group.merge(incoming(group))
    group = Group(tmp_path / "keys", ["a", "b"])
    merged = group.merge(incoming(group), keyed=KeyedWrite())
    assert [(r["id"], r["ts"]) for r in merged["rows"]] == [("a", 100), ("b", 1), ("c", 2)]


# --- row groups without changes --------------------------------------------------------------------------------------

SMALL_GROUPS = BaseFileOptions(parquet=ParquetOptions(block_size=400))


def _group_rows(group: Group, path: str) -> list[int]:
    metadata = pq.read_metadata(group.folder / path)
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def test_row_groups_without_changes_are_copied(tmp_path: Path) -> None:
    group = Group(tmp_path, [f"k{i:02}" for i in range(40)], files=SMALL_GROUPS)
    before = _group_rows(group, group.path)
    first, second = before[0], before[1]
    assert len(before) > 3
    indexed = pa.schema([("ts", pa.int64()), ("id", pa.string())])
    # a codec other than that of the file shows what is encoded
    files = BaseFileOptions(parquet=ParquetOptions(codec="gzip", block_size=400))
    rows = [group.row(first, "k", 1, delete=True), group.row(first + 1, f"k{first + 1:02}", 7)]
    merged = group.merge([*rows, group.row(None, "new", 9)], files=files, indexed=indexed)
    assert _group_rows(group, merged["path"]) == [first, second - 1, *before[2:], 1]
    metadata = pq.read_metadata(tmp_path / merged["path"])
    codecs = [metadata.row_group(i).column(1).compression for i in range(metadata.num_row_groups)]
    assert codecs == ["ZSTD", "GZIP", *["ZSTD"] * len(before[2:]), "GZIP"]
    old, new = _chunks(tmp_path, group.path, "id"), _chunks(tmp_path, merged["path"], "id")
    assert [chunk in new for chunk in old] == [True, False, *[True] * len(before[2:])]
    left = [r for i, r in enumerate(group.rows) if i != first]
    assert [r["id"] for r in merged["rows"]] == [*(r["id"] for r in left), "new"]
    assert [r["ts"] for r in merged["rows"]] == [*(7 if r["id"] == rows[1]["id"] else 100 for r in left), 9]
    assert {r[FILE_NAME] for r in merged["rows"]} == {merged["path"].split("/")[1]}
    assert (merged["numWrites"], merged["numUpdateWrites"], merged["numDeletes"], merged["numInserts"]) == (40, 1, 1, 1)
    assert merged["fileSizeInBytes"] == (tmp_path / merged["path"]).stat().st_size
    # statistics are those of all row groups
    where = (pc.field("id") == "k39") & (pc.field("ts") > 50)
    assert pq.read_table(tmp_path / merged["path"], filters=where, partitioning=None).num_rows == 1
    footer = read_footer(str(tmp_path / merged["path"]))
    assert (footer.num_rows, footer.min_key, footer.max_key) == (40, "k00", "new")


@pytest.mark.parametrize("case", ["type wider", "text replaced", "another writer"])
def test_row_groups_that_are_not_copied(tmp_path: Path, case: str) -> None:
    group = Group(tmp_path, [f"k{i:02}" for i in range(40)], files=SMALL_GROUPS)
    kind = pa.float64() if case == "type wider" else pa.int64()
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("tags", pa.list_(pa.string()))])
    if case == "another writer":
        file = tmp_path / group.path
        file.write_bytes(file.read_bytes().replace(b"parquet-cpp-arrow", b"parquet-cpp-other"))
    replaced = {"invalid_text": InvalidText.REPLACE} if case == "text replaced" else {}
    files = BaseFileOptions(parquet=ParquetOptions(codec="gzip", block_size=400))
    merged = group.merge([group.row(0, "k00", 7)], schema=schema, files=files, **replaced)
    metadata = pq.read_metadata(tmp_path / merged["path"])
    assert {metadata.row_group(i).column(1).compression for i in range(metadata.num_row_groups)} == {"GZIP"}
    assert [(r["id"], r["ts"]) for r in merged["rows"]] == [(f"k{i:02}", 100 if i else 7) for i in range(40)]


def test_small_row_groups_are_merged_with_new_rows(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "b"])
    merged = group.merge([group.row(None, "c", 1)])
    assert _group_rows(group, merged["path"]) == [3]


# --- updates of columns ----------------------------------------------------------------------------------------------

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


def _chunks(folder: Path, path: str, column: str) -> list[bytes]:
    data, metadata = (folder / path).read_bytes(), pq.read_metadata(folder / path)
    chunks = [metadata.row_group(i).column(metadata.schema.names.index(column)) for i in range(metadata.num_row_groups)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    return [data[at : at + c.total_compressed_size] for at, c in zip(starts, chunks, strict=True)]


def test_chunks_of_other_columns_are_copied(tmp_path: Path) -> None:
    group = Group(tmp_path, ["k0", "k1"], files=BaseFileOptions(parquet=ParquetOptions(codec="gzip")))
    merged = group.merge([_update(group, 1, 7)], unassigned=KEPT, updates_columns=True)
    metadata = pq.read_metadata(tmp_path / merged["path"]).row_group(0)
    codecs = {metadata.column(i).path_in_schema: metadata.column(i).compression for i in range(metadata.num_columns)}
    assert (codecs["id"], codecs["ts"], codecs[COMMIT_TIME], codecs[RECORD_KEY]) == ("GZIP", "ZSTD", "ZSTD", "GZIP")
    assert _chunks(tmp_path, merged["path"], "id") == _chunks(tmp_path, group.path, "id")


def test_row_groups_without_updates_are_copied_with_all_columns(tmp_path: Path) -> None:
    group = Group(tmp_path, [f"k{i:02}" for i in range(40)], files=SMALL_GROUPS)
    before = _group_rows(group, group.path)
    position = before[0] + 1
    files = BaseFileOptions(parquet=ParquetOptions(codec="gzip", block_size=400))
    merged = group.merge([_update(group, position, 7)], files=files, unassigned=KEPT, updates_columns=True)
    assert [r["ts"] for r in merged["rows"]] == [7 if i == position else 100 for i in range(40)]
    assert _group_rows(group, merged["path"]) == before
    old, new = (_chunks(tmp_path, path, COMMIT_SEQNO) for path in (group.path, merged["path"]))
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
    row = {**_update(group, 0, 1), ROW: None, RECORD_KEY: "k7"}
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


def test_new_records_apart(tmp_path: Path) -> None:
    for apart, groups in ((False, [4]), (True, [2, 2])):
        group = Group(tmp_path / str(apart), ["a", "b"])
        rows = [group.row(1, "b", 1), group.row(None, "c", 2), group.row(None, "d", 2)]
        merged = group.merge(rows, files=BaseFileOptions(separates_inserts=apart), size=2)
        metadata = pq.read_metadata(group.folder / merged["path"])
        assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == groups


def test_a_task_that_fails_leaves_no_files(tmp_path: Path) -> None:
    group = Group(tmp_path, [f"k{i}" for i in range(10)])

    def failing(schema: pa.Schema, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        yield from batches(rows, schema)
        raise RuntimeError("the input broke")

    for task in (
        lambda: upsert_task(failing(TAGGED, [group.row(1, "k1", 1)]), context(tmp_path, SECOND), TASK),
        lambda: bulk_insert_task(failing(KEYED, [keyed("x", "p")]), context(tmp_path, SECOND), TASK),
    ):
        with pytest.raises(RuntimeError, match="the input broke"):
            task()
    assert data_files(tmp_path) == {group.path}


def test_several_groups_in_one_task(tmp_path: Path) -> None:
    first, second = Group(tmp_path, ["a", "b"]), Group(tmp_path, ["c", "d"])
    groups = sorted([first, second], key=lambda g: g.file_id)
    new = {FILE_ID: "z-0", BASE_PATH: None, ROW: None, DELETE: False}
    rows = [groups[0].row(0, "x", 1), groups[0].row(None, "y", 1), groups[1].row(1, "z", 1)]
    rows += [{**keyed(k, "p"), **new} for k in ("n1", "n2")]
    gone = {**keyed("gone", "p"), **new, DELETE: True}
    stats = decode_stats([upsert_task(batches([*rows, gone], TAGGED, 2), context(tmp_path, SECOND), TASK)])
    assert sorted(stats["fileId"].to_pylist()) == sorted([first.file_id, second.file_id, "z-0"])
    assert sorted(stats["numWrites"].to_pylist()) == [2, 2, 3]
    markers = Markers(LocalStorage(tmp_path), SECOND).list()
    assert sorted(markers["io_type"].to_pylist()) == ["CREATE", "MERGE", "MERGE"]


def test_a_task_that_outlives_its_write_adds_nothing(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "b"])
    gate = WriteGate(LocalStorage(tmp_path), SECOND)

    def closing(schema: pa.Schema, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        yield from batches(rows, schema)
        gate.close()

    late = context(tmp_path, SECOND)
    with pytest.raises(TransactionError, match=SECOND):
        upsert_task(closing(TAGGED, [group.row(1, "b", 1)]), late, TASK)
    with pytest.raises(TransactionError, match=SECOND):
        bulk_insert_task(batches([keyed("x", "p")]), late, TASK)
    assert data_files(tmp_path) == {group.path}
