"""Reader of the archived timeline of layout 1: log files ``.commits_.archive.*``.

They have one Avro record per state file of an instant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from typing import Any

import pyarrow as pa

from pyhudi.errors import CorruptInstantError, FormatError
from pyhudi.format.avro.container import decode_datum as decode_avro
from pyhudi.format.avro.container import load_schema, write_container
from pyhudi.format.file_names import file_name_of
from pyhudi.format.log import BlockType, avro_datums, scan_blocks
from pyhudi.storage import Storage
from pyhudi.timeline.action_avro import schema_name
from pyhudi.timeline.archive.archived_instants import ARCHIVED_INSTANTS_SCHEMA, CACHE
from pyhudi.timeline.commit_metadata import commit_of_record
from pyhudi.timeline.instant import State
from pyhudi.timeline.timeline_layout import Layout

ARCHIVE_PREFIX = ".commits_.archive."
"""Prefix of the names of archive files of layout 1, followed by their number."""
_COMMIT_FIELDS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata", "hoodieCompactionMetadata")
_RESULT_FIELDS = {
    "hoodieCleanMetadata": "clean",
    "hoodieRollbackMetadata": "rollback",
    "hoodieSavePointMetadata": "savepoint",
}


def archive_files(storage: Storage, layout: Layout) -> list[str]:
    """Return the paths of the archive files of layout 1, the newest last."""
    return [path for path, _, _ in _listed_archive_files(storage, layout)]


def _listed_archive_files(storage: Storage, layout: Layout) -> list[tuple[str, int, int]]:
    """Return path, size and modification time of the archive files of layout 1, the newest last."""
    listed = storage.list(layout.history)
    columns = (listed[name].to_pylist() for name in ("path", "size", "mtime_ms"))
    files = (file for file in zip(*columns, strict=True) if file_name_of(file[0]).startswith(ARCHIVE_PREFIX))
    return sorted(files, key=lambda file: archive_number(file[0]))


def archive_number(path: str) -> int:
    """Return the number of an archive file of layout 1, 0 if it has none."""
    text = file_name_of(path).removeprefix(ARCHIVE_PREFIX).partition("_")[0]
    return int(text) if text.isdecimal() else 0


def completed_in_archive_file(storage: Storage, path: str) -> set[tuple[str, str]]:
    """Return requested times and actions of the completed instants in an archive file of layout 1.

    Raises:
        CorruptInstantError: The file cannot be parsed.
    """
    return {(record["commitTime"], record["actionType"]) for record in _completed_records(storage, path)}


def read_archive_logs(storage: Storage, layout: Layout, *, metadata: bool) -> pa.Table:
    def read(path: str) -> tuple[pa.Table, int]:
        rows = [_archive_row(record, metadata=metadata) for record in _completed_records(storage, path)]
        records = pa.Table.from_pylist(rows, schema=ARCHIVED_INSTANTS_SCHEMA)
        return records, records.nbytes

    files = _listed_archive_files(storage, layout)
    if metadata:
        tables = [read(path)[0] for path, _, _ in files]
    else:
        tables = [CACHE.get((storage.root, *file), partial(read, file[0])) for file in files]
    return pa.concat_tables([ARCHIVED_INSTANTS_SCHEMA.empty_table(), *tables])


def last_of_archive_file(storage: Storage, path: str) -> str | None:
    """Return the requested time of the last record of an archive file of layout 1; None if it has no records.

    Raises:
        CorruptInstantError: The file cannot be parsed.
    """
    with _archive_errors(storage, path):
        last = deque(_archive_datums(storage.read(path)), maxlen=1)
        return next((str(decode_avro(*datum)["commitTime"]) for datum in last), None)


def archive_datums(storage: Storage, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the encoded records of an archive file of layout 1 with their schemas; truncated blocks have none.

    Raises:
        CorruptInstantError: The file cannot be parsed.
    """
    with _archive_errors(storage, path):
        yield from _archive_datums(storage.read(path))


def archive_records(storage: Storage, path: str) -> Iterator[dict[str, Any]]:
    """Yield all records of an archive file of layout 1, one per state file of an instant.

    Raises:
        CorruptInstantError: The file cannot be parsed.
    """
    with _archive_errors(storage, path):
        yield from starmap(decode_avro, _archive_datums(storage.read(path)))


def _completed_records(storage: Storage, path: str) -> Iterator[dict[str, Any]]:
    return filter(is_completed_record, archive_records(storage, path))


@contextmanager
def _archive_errors(storage: Storage, path: str) -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise CorruptInstantError(
            f"cannot parse archive file {storage.uri(path)} ({error}); restore it from a backup"
        ) from error


def _archive_datums(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield schema and bytes of each record."""
    for block in scan_blocks(data):
        if block.type is BlockType.AVRO_DATA:
            schema = block.schema
            if schema is None:
                raise FormatError(f"the block at offset {block.offset} has no schema")
            for datum in avro_datums(block.content()):
                yield schema, bytes(datum)


def is_completed_record(record: dict[str, Any]) -> bool:
    """Return True for the record of a completed state."""
    # Releases before 0.6 archived only completed instants, without recording the state.
    return (record.get("actionState") or State.COMPLETED) == State.COMPLETED


def _archive_row(record: dict[str, Any], *, metadata: bool) -> dict[str, Any]:
    row = {"requested": record["commitTime"], "action": record["actionType"]}
    return row | {"metadata": archived_content(record)} if metadata else row


def archived_content(record: dict[str, Any], version: int = 6) -> bytes | None:
    """Return the content of the completed file of a record in the form of the given table version."""
    for name in _COMMIT_FIELDS:
        payload = record.get(name)
        if payload is not None and "partitionToWriteStats" in payload:
            return commit_of_record(payload).encode(version, record["actionType"])
    for name, action in _RESULT_FIELDS.items():
        if record.get(name) is not None:
            return write_container(load_schema(schema_name(action, State.COMPLETED, version)), [record[name]])
    return None
