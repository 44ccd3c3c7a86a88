"""New files of a bulk insert, against plain dicts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.format.base_file.parquet import read_footer
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.markers import Markers
from pyhudi.write.handles import bulk_insert_handle
from pyhudi.write.settings.write_context import BaseFileOptions, TaskId
from pyhudi.write.tasks.write_tasks import bulk_insert_task, upsert_task
from pyhudi.write.write_status import decode_stats
from tests.properties import examples
from tests.unit.write.handles.file_groups import FIRST, TASK, batches, context, data_files, keyed, stored


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
