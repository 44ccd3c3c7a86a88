"""Upserts whose rows come by partition, without Spark, against a plain model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.format.log import LogSchema, decode_deletes, decode_records, scan_blocks
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.sorted_deduplication import SortedDeduplicator
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.write.location_columns import IS_DELETE, PARTITION_SHARE
from pyhudi.write.planning.small_files import SMALL_FILES_SCHEMA, InsertPlacement, Sizing
from pyhudi.write.settings.log_settings import LOG_SLICES_SCHEMA, LogSettings
from pyhudi.write.settings.write_context import BaseFileOptions, FileColumns, TaskId, WriteContext
from pyhudi.write.tasks.in_task_tagging import (
    BASES_SCHEMA,
    TOO_MANY_ROWS,
    InTaskTagging,
    PartitionShare,
    in_task_tagging_task,
)
from pyhudi.write.write_status import decode_stats
from tests.properties import examples
from tests.unit.write.tagged import FIRST, SCHEMA, SECOND, TASK, THIRD

SHARED = pa.schema(
    [*SCHEMA, *((name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, PARTITION_SHARE)), (IS_DELETE, pa.bool_())]
)
Row = tuple[str, str, int, bool]
"""Partition, key, value, whether it is a delete."""


def batches(rows: list[Row], size: int, share: PartitionShare = PartitionShare()) -> Iterator[pa.RecordBatch]:  # noqa: B008
    names = ("id", "ts", RECORD_KEY, PARTITION_PATH, IS_DELETE, PARTITION_SHARE)
    # tasks get the rows of different keys in different orders
    ordered = sorted(rows, key=lambda row: (row[0], row[1]) if share.number % 2 else (row[0], ""))
    for start in range(0, len(ordered), size):
        part = [(k, v, k, p, gone or None, str(share)) for p, k, v, gone in ordered[start : start + size]]
        yield pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in part], SHARED)


def write(
    folder: Path,
    instant: str,
    rows: list[Row],
    bases: pa.Table,
    per_file: int,
    *,
    logs: bool = False,
    size: int = 3,
    task: TaskId = TASK,
    tasks: int = 1,
) -> pa.Table:
    """Write with a planned file size of so many records, by several tasks for each partition; returns the stats."""
    statuses = written(folder, instant, rows, bases, per_file, logs=logs, size=size, task=task, tasks=tasks)
    return decode_stats(statuses)


def written(
    folder: Path,
    instant: str,
    rows: list[Row],
    bases: pa.Table,
    per_file: int,
    *,
    logs: bool = False,
    size: int = 3,
    task: TaskId = TASK,
    tasks: int = 1,
    max_rows: int | None = None,
) -> list[bytes]:
    """Write as `write`; returns the results of the tasks."""
    storage = LocalStorage(folder)
    WriteFence(storage, instant).open()
    avro = to_avro(add_meta_columns(SCHEMA), "t")
    slices = [
        {"partition": p, "file_id": f, "base_instant": FIRST, "log_names": []}
        for p, f in zip(bases["partition"].to_pylist(), bases["file_id"].to_pylist(), strict=True)
    ]
    settings_ = LogSettings(LogSchema(avro, pa.schema([]), 9), slices=pa.Table.from_pylist(slices, LOG_SLICES_SCHEMA))
    context = WriteContext(
        storage,
        instant,
        FileColumns(SCHEMA, avro),
        files=BaseFileOptions(bloom=None),
        buffer_size=200,
        logs=settings_ if logs else None,
    )
    small = bases.rename_columns(SMALL_FILES_SCHEMA.names)
    sought = InTaskTagging(
        bases,
        InsertPlacement(
            # one of two files takes new records
            small.take(pa.array(range(0, small.num_rows, 2), pa.int64())),
            Sizing(per_file * 1000, 1_000_000_000, 1, True, 1000, 1.0),
            1000,
        ),
        SortedDeduplicator((RECORD_KEY,), IS_DELETE, MergeRules()),
        max_rows,
    )
    shares = [PartitionShare(number, tasks) for number in range(tasks)]
    return [in_task_tagging_task(batches(rows, size, each), context, task, sought) for each in shares]


def base_files(stats: pa.Table) -> pa.Table:
    # as planned: every file has room for three more records
    sizes = pa.array([0] * stats.num_rows, pa.int64())
    return pa.table([stats["partitionPath"], stats["fileId"], stats["path"], sizes], schema=BASES_SCHEMA)


def latest(folder: Path, *commits: pa.Table) -> dict[tuple[str, str], tuple[int, str]]:
    """The rows of the newest base files: value and commit time by partition and key."""
    newest = {
        (p, f): path
        for stats in commits
        for p, f, path in zip(*(stats[n].to_pylist() for n in ("partitionPath", "fileId", "path")), strict=True)
    }
    rows = [row for path in newest.values() for row in pq.read_table(folder / path, partitioning=None).to_pylist()]
    found = {(row[PARTITION_PATH], row["id"]): (row["ts"], row[COMMIT_TIME]) for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


ROWS = st.lists(
    st.tuples(st.sampled_from(["p=1", "p=2", ""]), st.sampled_from("abcdefghij"), st.integers(0, 9), st.booleans()),
    max_size=40,
)


@settings(deadline=None, max_examples=examples(60))
@given(
    first=ROWS,
    second=ROWS,
    per_file=st.sampled_from([1, 3, 100]),
    size=st.sampled_from([1, 7, 100]),
    tasks=st.sampled_from([1, 2, 3]),
)
def test_rows_find_their_places(
    first: list[Row], second: list[Row], per_file: int, size: int, tasks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("table")
    model: dict[tuple[str, str], tuple[int, str]] = {}
    done: list[pa.Table] = []
    for instant, rows in ((FIRST, first), (SECOND, second)):
        bases = base_files(done[0]) if done else BASES_SCHEMA.empty_table()
        done.append(write(folder, instant, rows, bases, per_file, size=size, tasks=tasks))
        for partition, key, value, gone in rows:
            if gone:
                model.pop((partition, key), None)
            else:
                model[partition, key] = (value, instant)
        assert latest(folder, *done) == model
    again = write(folder, SECOND, second, base_files(done[0]), per_file, size=size, task=TaskId(3, 5, 8), tasks=tasks)
    assert again["fileId"].to_pylist() == done[1]["fileId"].to_pylist(), "the same in every attempt"


def test_a_task_writes_nothing_if_it_has_too_many_rows(tmp_path: Path) -> None:
    rows = [("", key, 0, False) for key in "abcdefg"]
    none = BASES_SCHEMA.empty_table()
    assert written(tmp_path, FIRST, rows, none, 100, max_rows=6) == [TOO_MANY_ROWS]
    assert not list(tmp_path.glob("*.parquet"))
    stats = decode_stats(written(tmp_path, FIRST, rows, none, 100, max_rows=7))
    assert latest(tmp_path, stats) == {("", key): (0, FIRST) for key in "abcdefg"}


def test_updates_and_deletes_go_to_log_files_where_no_new_record_does(tmp_path: Path) -> None:
    first = write(tmp_path, FIRST, [("p", k, 0, False) for k in "abcdef"], BASES_SCHEMA.empty_table(), 2)
    assert first.num_rows == 3
    bases = base_files(first)
    updated = write(tmp_path, SECOND, [("p", k, 1, k == "f") for k in "abfx" if k != "x"], bases, 2, logs=True)
    assert all(path.rpartition("/")[2].startswith(".") for path in updated["path"].to_pylist())
    found: dict[str, int] = {}
    gone: list[str] = []
    for path in updated["path"].to_pylist():
        for block in scan_blocks((tmp_path / path).read_bytes()):
            if block.type.name == "DELETE":
                gone += decode_deletes(block, pa.schema([]))[RECORD_KEY].to_pylist()
            else:
                rows = decode_records(block).to_pylist()
                found |= {row["id"]: row["ts"] for row in rows}
                held = {r["id"]: i for i, r in enumerate(_base_rows(tmp_path, first, path))}
                assert block.positions().tolist() == sorted(held[row["id"]] for row in rows)
    assert (found, gone) == ({"a": 1, "b": 1}, ["f"])
    added = write(
        tmp_path, THIRD, [("p", "a", 2, False), ("p", "x", 2, False), ("p", "y", 2, True)], bases, 100, logs=True
    )
    assert pa.compute.sum(added["numInserts"]).as_py() == 1
    assert sum(path.endswith(".parquet") for path in added["path"].to_pylist()) == 1


def _base_rows(folder: Path, stats: pa.Table, log: str) -> list[dict[str, Any]]:
    file_id = log.rpartition("/")[2][1:].split("_")[0]
    (path,) = stats.filter(pa.compute.equal(stats["fileId"], file_id))["path"].to_pylist()
    rows: list[dict[str, Any]] = pq.read_table(folder / path, partitioning=None).to_pylist()
    return rows
