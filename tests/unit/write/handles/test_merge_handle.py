"""File groups into which rows are merged, against plain dicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.format.base_file.parquet_writer import ParquetOptions
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.markers import Markers
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.settings.write_context import BaseFileOptions
from pyhudi.write.tasks.write_tasks import bulk_insert_task, upsert_task
from pyhudi.write.write_status import decode_stats
from tests.properties import examples
from tests.unit.write.handles.file_groups import (
    FIRST,
    KEYED,
    SECOND,
    SMALL_GROUPS,
    TAGGED,
    TASK,
    Group,
    batches,
    column_chunks,
    context,
    data_files,
    group_rows,
    keyed,
)

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


def test_row_groups_without_changes_are_copied(tmp_path: Path) -> None:
    group = Group(tmp_path, [f"k{i:02}" for i in range(40)], files=SMALL_GROUPS)
    before = group_rows(group, group.path)
    first, second = before[0], before[1]
    assert len(before) > 3
    indexed = pa.schema([("ts", pa.int64()), ("id", pa.string())])
    # a codec other than that of the file shows what is encoded
    files = BaseFileOptions(parquet=ParquetOptions(codec="gzip", block_size=400))
    rows = [group.row(first, "k", 1, delete=True), group.row(first + 1, f"k{first + 1:02}", 7)]
    merged = group.merge([*rows, group.row(None, "new", 9)], files=files, indexed=indexed)
    assert group_rows(group, merged["path"]) == [first, second - 1, *before[2:], 1]
    metadata = pq.read_metadata(tmp_path / merged["path"])
    codecs = [metadata.row_group(i).column(1).compression for i in range(metadata.num_row_groups)]
    assert codecs == ["ZSTD", "GZIP", *["ZSTD"] * len(before[2:]), "GZIP"]
    old, new = column_chunks(tmp_path, group.path, "id"), column_chunks(tmp_path, merged["path"], "id")
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


def test_row_groups_are_copied_to_a_file_with_another_bloom_filter(tmp_path: Path) -> None:
    """So the filter is built anew, of keys that are copied and of keys that are merged."""
    group = Group(tmp_path, [f"k{i:02}" for i in range(40)], files=SMALL_GROUPS)
    files = replace(SMALL_GROUPS, bloom=BloomOptions(num_entries=77))
    merged = group.merge([group.row(1, "k01", 7), group.row(None, "new", 9)], files=files)
    old, new = column_chunks(tmp_path, group.path, "id"), column_chunks(tmp_path, merged["path"], "id")
    assert set(old[1:]) <= set(new)
    assert [r["id"] for r in merged["rows"]] == [*(r["id"] for r in group.rows), "new"]
    bloom = read_footer(str(tmp_path / merged["path"])).bloom_filter()
    assert bloom is not None
    assert pc.all(bloom.might_contain(pa.array(r["id"] for r in merged["rows"]))).as_py()


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
    assert group_rows(group, merged["path"]) == [3]


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
    new = {FILE_ID: "z-0", BASE_PATH: None, ROW_POSITION: None, IS_DELETE: False}
    rows = [groups[0].row(0, "x", 1), groups[0].row(None, "y", 1), groups[1].row(1, "z", 1)]
    rows += [{**keyed(k, "p"), **new} for k in ("n1", "n2")]
    gone = {**keyed("gone", "p"), **new, IS_DELETE: True}
    stats = decode_stats([upsert_task(batches([*rows, gone], TAGGED, 2), context(tmp_path, SECOND), TASK)])
    assert sorted(stats["fileId"].to_pylist()) == sorted([first.file_id, second.file_id, "z-0"])
    assert sorted(stats["numWrites"].to_pylist()) == [2, 2, 3]
    markers = Markers(LocalStorage(tmp_path), SECOND).list()
    assert sorted(markers["io_type"].to_pylist()) == ["CREATE", "MERGE", "MERGE"]


def test_a_task_that_outlives_its_write_adds_nothing(tmp_path: Path) -> None:
    group = Group(tmp_path, ["a", "b"])
    fence = WriteFence(LocalStorage(tmp_path), SECOND)

    def closing(schema: pa.Schema, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        yield from batches(rows, schema)
        fence.close()

    late = context(tmp_path, SECOND)
    with pytest.raises(TransactionError, match=SECOND):
        upsert_task(closing(TAGGED, [group.row(1, "b", 1)]), late, TASK)
    with pytest.raises(TransactionError, match=SECOND):
        bulk_insert_task(batches([keyed("x", "p")]), late, TASK)
    assert data_files(tmp_path) == {group.path}
