"""Procedures that inspect files: their sizes, their readability, and their status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.format.file_names import file_name_of
from pyhudi.services.repair.orphan_files import delete_orphan_files
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.storage import Storage, open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, State

_THREADS = 16
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_UNKNOWN = ("unknown", "", "", "", "")
_DELETING = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
_Deleted = tuple[str, str, str, bytes]
"""Action, instant, timeline and record of an action that deletes files."""


def show_fs_path_detail(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show folders, files and bytes below a path, or below each folder in it, the largest first if ``sort``."""
    path = str(arguments.text("path")).rstrip("/")
    storage = open_storage(path, Options.parse(session_settings(spark, path)))
    files = _visible(storage.list("", recursive=True))
    if not arguments.flag("is_sub"):
        return [_detail(storage.uri(), files["path"], files["size"])]
    heads = pc.replace_substring_regex(files["path"], r"(?s)/.*$", "")
    rows = []
    for name in pc.unique(heads).to_pylist():
        part = files.filter(pc.equal(heads, name))
        below = pc.utf8_slice_codeunits(part["path"], len(name) + 1)
        rows.append(_detail(storage.uri(name), below, part["size"]))
    if arguments.flag("sort"):
        rows.sort(key=lambda row: -row[2])
    return arguments.limited(rows)


def _visible(files: pa.Table) -> pa.Table:
    """Return the files without the checksum files that Hadoop adds to local ones."""
    return files.filter(pc.invert(pc.match_substring_regex(files["path"], r"(^|/)\.[^/]*\.crc$")))


def _detail(uri: str, paths: pa.ChunkedArray, sizes: pa.ChunkedArray) -> tuple[Any, ...]:
    """A row of the files of a folder; ``paths`` begin below it."""
    folders = pc.unique(pc.replace_substring_regex(paths, r"/?[^/]*$", "")).to_pylist()
    all_folders = {""} | {folder[:end] for folder in folders for end in _ends(folder)}
    size = pc.sum(sizes).as_py() or 0
    # Apache Hudi has the quotas, of which there are none, and the space under each other's names
    return (len(all_folders), len(paths), size, _in_units(size), uri, -1, size, -1)


def _ends(folder: str) -> Iterator[int]:
    """Yield the ends of the parent folders in a path, and that of the path."""
    yield from (at for at, letter in enumerate(folder) if letter == "/")
    yield len(folder)


def _in_units(size: int) -> str:
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.2f}{_UNITS[unit]}"


def show_invalid_parquet(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the Parquet files of a table that cannot be read; with ``needDelete`` delete them, if they belong to no
    write.

    Raises:
        QueryError: One that is to be deleted is named by the timeline; nothing is deleted then.
        BusyError: Others are at work on the table.
    """
    client, opts = arguments.opened(spark)
    partitions, instants = (_names(arguments.text(name)) for name in ("partitions", "instants"))
    files, _ = list_files(client.storage, partitions or None)
    files = files.filter(pc.ends_with(files["path"], ".parquet"))
    if instants:
        files = files.filter(pc.is_in(files["instant"], value_set=pa.array(instants)))
    with ThreadPoolExecutor(_THREADS) as pool:
        paths = files["path"].to_pylist()
        readable = pool.map(lambda path: _can_be_read(client.storage, path), paths)
        bad = [path for path, fine in zip(paths, readable, strict=True) if not fine]
    if bad and arguments.flag("needDelete"):
        reader = SparkFileStatsReader(spark)
        delete_orphan_files(client, opts, paths=bad, dry_run=False, stats_reader=reader)
    return arguments.limited((client.storage.uri(path),) for path in bad)


def _names(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _can_be_read(storage: Storage, path: str) -> bool:
    """Return True if a file has a Parquet footer."""
    with storage.open_input(path) as file:
        try:
            pq.ParquetFile(file)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError):
            return False
    return True


def show_file_status(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show whether a file exists, or which action has deleted it."""
    client = arguments.client(spark)
    partition, name = arguments.text("partition") or "", str(arguments.text("file"))
    path = f"{partition}/{name}" if partition else name
    for action, instant, timeline, record in _deletions(client):
        for deleted in _deleted_paths(action, record):
            if file_name_of(deleted) == name and (not partition or f"{partition}/{name}" in f"/{deleted}"):
                return [("deleted", action, instant, timeline, deleted)]
    if client.storage.exists(path):
        return [("exists", "", "", "", client.storage.uri(path))]
    return [_UNKNOWN]


def _deletions(client: TableMetaClient) -> Iterator[_Deleted]:
    """Completed actions that delete files, newest first."""
    active = client.active_timeline()
    for instant in reversed(list(active.timeline.completed().of_actions(*_DELETING))):
        yield instant.action, instant.requested, "active", active.read(instant)
    archived = read_archived_timeline(client.storage, client.config.layout).sort_by([("requested", "descending")])
    for row in archived.to_pylist():
        if row["action"] in _DELETING and row["metadata"]:
            yield row["action"], row["requested"], "archived", row["metadata"]


def _deleted_paths(action: str, data: bytes) -> Iterator[str]:
    record = decode_record(action, State.COMPLETED, data)
    records: Iterable[dict[str, Any]] = [record]
    if action == Action.RESTORE:
        records = [one for several in record["hoodieRestoreMetadata"].values() for one in several]
    for one in records:
        for partition, part in one["partitionMetadata"].items():
            for path in part["successDeleteFiles"]:
                yield path if "/" in path or not partition else f"{partition}/{path}"


PROCEDURES: dict[str, Procedure] = {
    "show_fs_path_detail": show_fs_path_detail,
    "show_invalid_parquet": show_invalid_parquet,
    "show_file_status": show_file_status,
}
