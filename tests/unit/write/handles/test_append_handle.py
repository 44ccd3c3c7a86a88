"""Log files that write tasks leave, without Spark, and which file slices get them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import TransactionError
from pyhudi.format.file_names import parse_names
from pyhudi.format.log import (
    BlockType,
    Header,
    LogBlock,
    LogOptions,
    LogSchema,
    decode_deletes,
    decode_records,
    scan_blocks,
)
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.markers import Markers
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.planning.small_files import (
    SMALL_FILES_SCHEMA,
    InsertPlacement,
    Sizing,
    fillable_small_files,
    smallest_files,
)
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, build_workload_profile
from pyhudi.write.settings.log_settings import LOG_SLICES_SCHEMA, LogSettings, appended_groups, log_slices
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.tasks.write_tasks import upsert_task
from pyhudi.write.write_status import decode_stats
from tests.unit.write.handles.contexts import write_context
from tests.unit.write.tagged import FIRST, SCHEMA, SECOND, TAGGED, TASK, THIRD

BASE = f"p/f-0_0-1-2_{FIRST}.parquet"


def context(folder: Path, version: int = 9, log_names: tuple[str, ...] = (), **more: Any) -> WriteContext:
    storage = LocalStorage(folder)
    WriteFence(storage, SECOND).open()
    avro = to_avro(add_meta_columns(SCHEMA), "t")
    rows = [{"partition": "p", "file_id": "f-0", "base_instant": FIRST, "log_names": list(log_names)}]
    logs = LogSettings(
        LogSchema(avro, pa.schema([("ts", pa.int64())]), version),
        more.pop("options", LogOptions()),
        positions=version >= 8,
        slices=pa.Table.from_pylist(rows, LOG_SLICES_SCHEMA),
    )
    return write_context(storage, SECOND, SCHEMA, avro_schema=avro, rules=MergeRules(("ts",)), logs=logs, **more)


def tagged(key: str, row: int | None, ts: int = 1, *, delete: bool = False) -> dict[str, Any]:
    return {
        "id": key,
        "ts": ts,
        RECORD_KEY: key,
        PARTITION_PATH: "p",
        IS_DELETE: delete,
        FILE_ID: "f-0",
        BASE_PATH: BASE,
        ROW_POSITION: row,
    }


def batches(rows: list[dict[str, Any]], size: int = 2) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(rows[start : start + size], TAGGED)


def run(rows: list[dict[str, Any]], how: WriteContext, task: TaskId = TASK) -> list[dict[str, Any]]:
    stats: list[dict[str, Any]] = decode_stats([upsert_task(batches(rows), how, task)]).to_pylist()
    return stats


def blocks(folder: Path, stat: dict[str, Any]) -> list[LogBlock]:
    return list(scan_blocks((folder / stat["path"]).read_bytes()))


def test_updates_and_deletes_of_a_file_group(tmp_path: Path) -> None:
    rows = [tagged("a", 3), tagged("b", 5, 7, delete=True), tagged("c", 6), tagged("d", 6), tagged("e", 9)]
    (stat,) = run(rows, context(tmp_path))
    data, deletes = blocks(tmp_path, stat)
    assert (data.type, deletes.type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    found = decode_records(data).to_pylist()
    assert [row["id"] for row in found] == ["a", "c", "d", "e"]
    assert Header.RECORD_POSITIONS not in data.headers, "two rows of one position, which a set cannot say"
    assert deletes.positions().tolist() == [5]
    assert {row[COMMIT_TIME] for row in found} == {SECOND}
    assert {row[FILE_NAME] for row in found} == {"f-0"}
    assert [row[COMMIT_SEQNO] for row in found] == [f"{SECOND}_3_{i}" for i in range(4)]
    gone = decode_deletes(deletes, pa.schema([("ts", pa.int64())])).to_pylist()
    assert [(row[RECORD_KEY], row[PARTITION_PATH], row["ts"]) for row in gone] == [("b", "p", 7)]
    assert (stat["numWrites"], stat["numUpdateWrites"], stat["numDeletes"], stat["prevCommit"]) == (4, 4, 1, SECOND)
    (marker,) = Markers(LocalStorage(tmp_path), SECOND).list().to_pylist()
    assert (marker["data_path"], marker["io_type"]) == (stat["path"], "CREATE")


def test_names_of_version_6(tmp_path: Path) -> None:
    names = (f".f-0_{FIRST}.log.1_0-1-2", f".f-0_{FIRST}.log.2_1-0-1")
    how = context(tmp_path, 6, names, hard_deletes=True)
    (stat,) = run([tagged("a", 3), tagged("b", 5, delete=True)], how)
    (name,) = parse_names(pa.array([stat["path"].rpartition("/")[2]])).to_pylist()
    assert (name["instant"], name["log_version"]) == (FIRST, 3)
    assert stat["logFiles"] == [*names, name["name"]]
    assert (stat["prevCommit"], stat["baseFile"]) == (FIRST, BASE.rpartition("/")[2])
    data, deletes = blocks(tmp_path, stat)
    assert data.instant == SECOND
    assert Header.RECORD_POSITIONS not in data.headers
    assert decode_deletes(deletes, pa.schema([("ts", pa.int64())]))["_pyhudi_natural"].to_pylist() == [True]
    (marker,) = Markers(LocalStorage(tmp_path), SECOND).list().to_pylist()
    assert marker["io_type"] == "APPEND"
    # another write of a task with the same numbers makes another file
    other = replace(how, instant=THIRD)
    WriteFence(how.storage, THIRD).open()
    (again,) = run([tagged("a", 3)], other)
    assert again["path"] != stat["path"]


def test_files_roll_over(tmp_path: Path) -> None:
    options = LogOptions(max_file_size=300, max_block_size=100)
    stats = run([tagged(f"k{i}", i) for i in range(40)], context(tmp_path, 6, options=options))
    stats.sort(key=lambda stat: int(stat["logVersion"]))
    assert [stat["logVersion"] for stat in stats] == list(range(1, len(stats) + 1))
    assert [len(stat["logFiles"]) for stat in stats] == list(range(1, len(stats) + 1))
    assert sum(stat["numWrites"] for stat in stats) == 40
    keys = [
        row["id"] for stat in stats for block in blocks(tmp_path, stat) for row in decode_records(block).to_pylist()
    ]
    assert keys == [f"k{i}" for i in range(40)]


def test_nothing_is_left_when_the_write_is_over(tmp_path: Path) -> None:
    how = context(tmp_path)
    WriteFence(how.storage, SECOND).close()
    with pytest.raises(TransactionError):
        run([tagged("a", 3)], how)
    assert not list(tmp_path.rglob("*.log.*"))
    assert not Markers(how.storage, SECOND).list().num_rows


def test_without_meta_fields(tmp_path: Path) -> None:
    (stat,) = run([tagged("a", 3), tagged("b", 4, delete=True)], context(tmp_path, populate_meta_fields=False))
    data, deletes = blocks(tmp_path, stat)
    (row,) = decode_records(data).to_pylist()
    assert (row["id"], row[RECORD_KEY], row[COMMIT_TIME]) == ("a", None, None)
    assert decode_deletes(deletes, pa.schema([("ts", pa.int64())]))[RECORD_KEY].to_pylist() == ["b"]


# --- where rows go ---------------------------------------------------------------------------------------------------


def test_groups_that_get_new_records_are_merged() -> None:
    sizes = Sizing(1000, 500, 40, auto_split=True, default_record_size=10, estimation_threshold=1.0)
    counts = pa.Table.from_pylist(
        [
            {"partition": "p", "file_id": "f", "base_path": "p/f", "rows": 3},
            {"partition": "p", "file_id": "g", "base_path": "p/g", "rows": 4},
            {"partition": "p", "file_id": None, "base_path": None, "rows": 5},
        ],
        COUNTS_SCHEMA,
    )
    slices = pa.table({"partition": ["p", "p"], "file_id": ["f", "g"], "base_size": [100, 400]})
    small = pa.Table.from_pylist(
        [{"partition": "p", "file_id": "f", "base_path": "p/f", "size": 100}], SMALL_FILES_SCHEMA
    )
    workload = build_workload_profile(counts, slices, InsertPlacement(small, sizes, 10), logs=True)
    assert appended_groups(workload)["file_id"].to_pylist() == ["g"]
    assert dict(zip(*(workload.groups[c].to_pylist() for c in ("file_id", "size")), strict=True)) == {"f": 180, "g": 40}


def test_the_smallest_files_of_each_partition() -> None:
    rows = [("b", "1", 7), ("a", "2", 5), ("b", "3", 6), ("a", "4", 4), ("b", "0", 6)]
    files = pa.Table.from_pylist(
        [{"partition": p, "file_id": f, "base_path": f"{p}/{f}", "size": s} for p, f, s in rows], SMALL_FILES_SCHEMA
    )
    assert smallest_files(files, 1)["file_id"].to_pylist() == ["4", "0"]
    assert smallest_files(files, 2)["file_id"].to_pylist() == ["4", "2", "0", "3"]
    assert smallest_files(files, 0).num_rows == smallest_files(files.slice(0, 0), 1).num_rows == 0


def test_files_are_filled_where_it_pays() -> None:
    mb = 1024 * 1024
    sizes = {"1": 3 * mb, "2": 5 * mb, "3": 100 * mb, "4": 100 * mb, "5": 100 * mb}
    partitions = ["few", "few", "few", "many", "none"]
    named = zip(partitions, sizes.items(), strict=True)
    rows = [{"partition": p, "file_id": f, "base_path": f, "size": size} for p, (f, size) in named]
    files = pa.Table.from_pylist(rows, SMALL_FILES_SCHEMA)
    new = pa.table({"partition": ["many", "few"], "rows": pa.array([70_000, 10], pa.int64())})
    assert fillable_small_files(files, new, 100, 16)["file_id"].to_pylist() == ["1", "4"]
    assert fillable_small_files(files, new, 100, 0).num_rows == 5
    assert fillable_small_files(files.slice(0, 0), new, 100, 16).num_rows == 0


@pytest.mark.parametrize("by_slice", [True, False])
def test_slices_that_get_log_files(by_slice: bool) -> None:
    def one(partition: str, file_id: str, *logs: str) -> dict[str, Any]:
        paths = [f"{partition}/{name}" for name in logs]
        return {"partition": partition, "file_id": file_id, "base_instant": FIRST, "log_paths": paths}

    old, new = f".g_{FIRST}.log.1_0-0-0", f".g_{SECOND}.log.1_0-0-0"
    slices = pa.Table.from_pylist([one("p", "f"), one("p", "g", old, new), one("q", "g")], SLICE_SCHEMA)
    pending = pa.Table.from_pylist([{"partition": "p", "file_id": "g", "instant": SECOND}], GROUP_INSTANT_SCHEMA)
    groups = pa.table({"partition": ["q", "p", "p"], "file_id": ["g", "g", "f"]})
    found = log_slices(groups, slices, pending, named_by_slice=by_slice).to_pylist()
    assert [(row["partition"], row["file_id"]) for row in found] == [("q", "g"), ("p", "g"), ("p", "f")]
    if by_slice:
        # a pending compaction has opened a slice, which is what log files go to from then on
        assert [row["base_instant"] for row in found] == [FIRST, SECOND, FIRST]
        assert [row["log_names"] for row in found] == [[], [new], []]
    # Apache Hudi's downgrade to version 6 leaves log files that are named after their delta commits
    downgraded = log_slices(groups, slices, pending.slice(0, 0), named_by_slice=by_slice).to_pylist()
    if by_slice:
        assert [row["base_instant"] for row in downgraded] == [FIRST, SECOND, FIRST]
        assert [row["log_names"] for row in downgraded] == [[], [new], []]
    assert log_slices(groups.slice(0, 0), slices, pending, named_by_slice=by_slice).num_rows == 0
