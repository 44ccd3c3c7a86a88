"""A file group that write tasks change, beside a dict with its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.format.base_file.parquet_writer import ParquetOptions
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.settings.write_context import BaseFileOptions, TaskId, WriteContext
from pyhudi.write.tasks.write_tasks import bulk_insert_task, upsert_task
from pyhudi.write.write_status import decode_stats
from tests.unit.write.handles.contexts import write_context

FIRST, SECOND = "20260101000000000", "20260102000000000"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("tags", pa.list_(pa.string()))])
TASK = TaskId(3, 5, 7)
KEYED = pa.schema([*SCHEMA, (RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())])
TAGGED = pa.schema(
    [*KEYED, (IS_DELETE, pa.bool_()), (FILE_ID, pa.string()), (BASE_PATH, pa.string()), (ROW_POSITION, pa.int64())]
)


def context(folder: Path, instant: str = FIRST, **more: Any) -> WriteContext:
    storage = LocalStorage(folder)
    WriteFence(storage, instant).open()
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
        place = {FILE_ID: self.file_id, BASE_PATH: self.path, ROW_POSITION: position, IS_DELETE: delete}
        return {"id": key, "ts": ts, "tags": None, RECORD_KEY: key, PARTITION_PATH: "p", **place}

    def merge(self, rows: list[dict[str, Any]], size: int = 3, **more: Any) -> dict[str, Any]:
        schema = more.pop("incoming", TAGGED)
        status = upsert_task(batches(rows, schema, size), context(self.folder, SECOND, **more), TASK)
        stats = decode_stats([status])
        assert stats.num_rows == 1
        return {**stats.to_pylist()[0], "rows": stored(self.folder, stats)}


SMALL_GROUPS = BaseFileOptions(parquet=ParquetOptions(block_size=400))


def group_rows(group: Group, path: str) -> list[int]:
    metadata = pq.read_metadata(group.folder / path)
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def column_chunks(folder: Path, path: str, column: str) -> list[bytes]:
    data, metadata = (folder / path).read_bytes(), pq.read_metadata(folder / path)
    chunks = [metadata.row_group(i).column(metadata.schema.names.index(column)) for i in range(metadata.num_row_groups)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    return [data[at : at + c.total_compressed_size] for at, c in zip(starts, chunks, strict=True)]
