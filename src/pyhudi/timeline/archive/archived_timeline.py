"""Archived timeline as Arrow: the LSM files of layout 2 and the log files ``.commits_.archive.*`` of layout 1.

Both readers return one row per archived instant (:data:`HISTORY_SCHEMA`), sorted by requested time. The times of
instants, which most queries want, are cached by the name and length of their file, and in layout 1, where names repeat
when a table is dropped and created again, by its modification time; their metadata, which may be large, is not.

Layout 2 has Parquet files that a manifest lists, and a file ``_version_`` with the number of the manifest; other files
are garbage. File names contain the first and last instant of the file, but not reliably (an upgrade from version 6
writes them in the order of the old archive), so only Parquet statistics are used to skip files. Layout 1 has one Avro
record per state file of an instant.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import CorruptInstantError, FormatError, NotFoundError
from pyhudi.format.avro.container import decode_record as decode_avro
from pyhudi.format.avro.container import load_schema, write_container
from pyhudi.format.corruption import as_corruption
from pyhudi.format.file_names import file_name_of
from pyhudi.format.hfile.block_cache import BlockCache
from pyhudi.format.log import BlockType, avro_datums, scan_blocks
from pyhudi.timeline.action_metadata import schema_name
from pyhudi.timeline.commit_metadata import commit_of_record
from pyhudi.timeline.instant import WRITE_ACTIONS, State
from pyhudi.timeline.timeline_layout import Layout

if TYPE_CHECKING:
    from pyhudi.storage import Storage

HISTORY_SCHEMA = pa.schema(
    [
        ("requested", pa.string()),
        ("completion", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
    ]
)
"""``completion`` is null in layout 1. ``action`` is the completed one (commit for a compaction). ``metadata`` is the
content of the completed file (in layout 1 reconstructed from the archived record), ``plan`` that of the requested file
if the archive has it; both are null if not requested."""

_LSM_COLUMNS = {
    "requested": "instantTime",
    "completion": "completionTime",
    "action": "action",
    "metadata": "metadata",
    "plan": "plan",
}
_INSTANT_COLUMNS = ("requested", "completion", "action")
_NO_METADATA, _NO_PLAN = (
    (pa.field(_LSM_COLUMNS[name], pa.binary()), pa.chunked_array([], pa.binary())) for name in ("metadata", "plan")
)
VERSION_FILE = "_version_"
"""File with the number of the current manifest."""
ARCHIVE_PREFIX = ".commits_.archive."
"""Prefix of the names of archive files of layout 1, followed by their number."""
_RACE_RETRIES = 5
_READ_THREADS = 16
_COMMIT_FIELDS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata", "hoodieCompactionMetadata")
_RESULT_FIELDS = {
    "hoodieCleanMetadata": "clean",
    "hoodieRollbackMetadata": "rollback",
    "hoodieSavePointMetadata": "savepoint",
}

CACHE = BlockCache(32 * 1024 * 1024)
"""Instants of archive files, without metadata, by root of the storage, path and length, and in layout 1 by modification
time."""

_T = TypeVar("_T")


def read_history(
    storage: Storage,
    layout: Layout,
    *,
    after: str | None = None,
    up_to: str | None = None,
    completed_after: str | None = None,
    metadata: bool = True,
) -> pa.Table:
    """Return archived instants with ``after < requested <= up_to`` as HISTORY_SCHEMA, sorted; empty without an archive.

    ``completed_after`` restricts them by completion time, or by requested time where there is none.

    Raises:
        CorruptInstantError: A manifest or archive file cannot be parsed.
    """
    wanted = None
    if after is not None:
        wanted = pc.field("instantTime") > after
    if up_to is not None:
        below = pc.field("instantTime") <= up_to
        wanted = below if wanted is None else wanted & below
    if completed_after is not None and layout.version >= 2:
        time = pc.field("completionTime")
        late = (time > completed_after) | (time.is_null() & (pc.field("instantTime") > completed_after))
        wanted = late if wanted is None else wanted & late
    if layout.version >= 2:
        names = [n for n in HISTORY_SCHEMA.names if metadata or n not in ("metadata", "plan")]
        table = _retry(lambda: _read_lsm(storage, layout, names, wanted))
    else:
        table = _retry(lambda: _read_archive(storage, layout, metadata))
        for bound in (after, completed_after):
            if bound is not None:
                table = table.filter(pc.greater(table["requested"], bound))
        if up_to is not None:
            table = table.filter(pc.less_equal(table["requested"], up_to))
    return _unique(table)


def archived_writes(
    storage: Storage,
    layout: Layout,
    *,
    after: str | None = None,
    up_to: str | None = None,
    completed_after: str | None = None,
) -> pa.Table:
    """Return the commits, deltacommits and replacecommits that `read_history` finds, without metadata.

    Raises:
        CorruptInstantError: A manifest or archive file cannot be parsed.
    """
    found = read_history(storage, layout, after=after, up_to=up_to, completed_after=completed_after, metadata=False)
    return found.filter(pc.is_in(found["action"], value_set=pa.array(sorted(WRITE_ACTIONS))))


def archived_completions(storage: Storage, layout: Layout, wanted: Collection[str]) -> dict[str, str]:
    """Return completion times of archived instants by requested time; other instants are omitted. Empty in layout 1."""
    if layout.version < 2 or not wanted:
        return {}
    among = pc.field("instantTime").isin(sorted(wanted))
    table = _retry(lambda: _read_lsm(storage, layout, ["requested", "completion"], among))
    pairs = zip(table["requested"].to_pylist(), table["completion"].to_pylist(), strict=True)
    return {requested: completion for requested, completion in pairs if completion is not None}


def _retry(read: Callable[[], _T]) -> _T:
    """Repeat a read if a file disappeared, because another writer compacted or cleaned the archive."""
    for left in range(_RACE_RETRIES, -1, -1):
        try:
            return read()
        except NotFoundError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _read_lsm(storage: Storage, layout: Layout, names: list[str], wanted: pc.Expression | None) -> pa.Table:
    def read_file(file: Mapping[str, Any]) -> pa.Table:
        path = f"{layout.history}/{file['fileName']}"
        read = _read_lsm_file(storage, path, file["fileLen"], names, wanted)
        columns = [
            read[_LSM_COLUMNS[f.name]].cast(f.type) if f.name in names else pa.nulls(read.num_rows, f.type)
            for f in HISTORY_SCHEMA
        ]
        return pa.Table.from_arrays(columns, schema=HISTORY_SCHEMA)

    # Most names start with the first instant, so that the result is already sorted.
    files = sorted(manifest_files(storage, layout), key=itemgetter("fileName"))
    if "metadata" in names or len(files) < 2:  # metadata may be large
        tables = [read_file(file) for file in files]
    else:
        with ThreadPoolExecutor(_READ_THREADS) as pool:
            tables = list(pool.map(read_file, files))
    return pa.concat_tables([HISTORY_SCHEMA.empty_table(), *tables])


def _read_lsm_file(
    storage: Storage, path: str, length: int, names: list[str], wanted: pc.Expression | None
) -> pa.Table:
    """Return columns of one file of layout 2. ``length`` is that of its manifest; 0 if it is not known."""

    def read(names: Iterable[str], wanted: pc.Expression | None) -> pa.Table:
        try:
            with storage.open_input(path) as source, as_corruption("damaged"):
                return pq.read_table(source, columns=[_LSM_COLUMNS[n] for n in names], filters=wanted)
        except FormatError as e:
            raise CorruptInstantError(
                f"archive file {storage.uri(path)} is not a Parquet file of the timeline ({e}); restore it from a "
                "backup"
            ) from e

    def instants() -> tuple[pa.Table, int]:
        found = read(_INSTANT_COLUMNS, None)
        return found, found.nbytes

    if not length:
        return read(names, wanted)
    key = (storage.root, path, length)
    if "metadata" not in names:
        found = CACHE.get(key, instants)
        return found if wanted is None else found.filter(wanted)
    known = CACHE.find(key)
    if known is not None and wanted is not None and not known.filter(wanted).num_rows:
        return known.slice(0, 0).append_column(*_NO_METADATA).append_column(*_NO_PLAN)
    return read(names, wanted)


def manifest_number(storage: Storage, layout: Layout) -> int:
    """Return the number of the current manifest of the archived timeline (layout 2); 0 before the first one.

    Raises:
        CorruptInstantError: The version file is invalid.
    """
    path = f"{layout.history}/{VERSION_FILE}"
    try:
        text = storage.read(path).decode("utf-8", "replace").strip()
    except NotFoundError:
        return 0
    if not text.isdecimal():
        raise CorruptInstantError(
            f"{storage.uri(path)} contains {text!r} instead of the number of a manifest; write the number of the "
            "newest manifest in its folder into it"
        )
    return int(text)


def manifest_files(storage: Storage, layout: Layout, number: int | None = None) -> list[dict[str, Any]]:
    """Return the files (``fileName``, ``fileLen``) of the current manifest, or of the one with the given number; none
    if nothing has been archived.

    Raises:
        CorruptInstantError: The manifest cannot be parsed.
    """
    number = manifest_number(storage, layout) if number is None else number
    if not number:
        return []
    path = f"{layout.history}/manifest_{number}"
    try:
        files = json.loads(storage.read(path))["files"]
        return [{"fileName": str(file["fileName"]), "fileLen": int(file.get("fileLen", 0))} for file in files]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorruptInstantError(
            f"cannot parse manifest {storage.uri(path)} of the archived timeline ({e!r}); restore it from a "
            f"backup, or write the number of an older manifest into {VERSION_FILE} in its folder"
        ) from e


def archive_files(storage: Storage, layout: Layout) -> list[str]:
    """Return the paths of the archive files of layout 1, the newest last."""
    return [path for path, _, _ in _listed_archive_files(storage, layout)]


def _listed_archive_files(storage: Storage, layout: Layout) -> list[tuple[str, int, int]]:
    """Return path, size and modification time of the archive files of layout 1, the newest last."""
    found = storage.list(layout.history)
    columns = (found[name].to_pylist() for name in ("path", "size", "mtime_ms"))
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


def _read_archive(storage: Storage, layout: Layout, metadata: bool) -> pa.Table:
    def read(path: str) -> tuple[pa.Table, int]:
        rows = [_archive_row(record, metadata) for record in _completed_records(storage, path)]
        found = pa.Table.from_pylist(rows, schema=HISTORY_SCHEMA)
        return found, found.nbytes

    files = _listed_archive_files(storage, layout)
    if metadata:
        tables = [read(path)[0] for path, _, _ in files]
    else:
        tables = [CACHE.get((storage.root, *file), partial(read, file[0])) for file in files]
    return pa.concat_tables([HISTORY_SCHEMA.empty_table(), *tables])


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
    except FormatError as e:
        raise CorruptInstantError(
            f"cannot parse archive file {storage.uri(path)} ({e}); restore it from a backup"
        ) from e


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


def _archive_row(record: dict[str, Any], metadata: bool) -> dict[str, Any]:
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


def _unique(table: pa.Table) -> pa.Table:
    """Sort by requested time, with one row per instant that was archived twice (after a killed run)."""
    if _is_ascending(table["requested"]):
        return table
    table = sort_rows(table, "requested", "action")
    if table.num_rows < 2:
        return table
    requested, action = (table[name].combine_chunks() for name in ("requested", "action"))
    same = pc.and_(pc.equal(requested[1:], requested[:-1]), pc.equal(action[1:], action[:-1]))
    return table.filter(pa.concat_arrays([pa.array([True]), pc.invert(same)]))


def sort_rows(table: pa.Table, *columns: str) -> pa.Table:
    """Sort by columns. Rows are not copied: `pyarrow.Table.sort_by` combines chunks, and a chunk of a binary column
    cannot have more than 2 GiB."""
    order = pc.sort_indices(table.select(columns), [(column, "ascending") for column in columns]).to_numpy()
    ends_of_runs = np.flatnonzero(np.diff(order) != 1) + 1
    runs = [run for run in np.split(order, ends_of_runs) if len(run)]
    return pa.concat_tables([table.schema.empty_table(), *(table.slice(int(run[0]), len(run)) for run in runs)])


def _is_ascending(texts: pa.ChunkedArray) -> bool:
    """Return True if the texts are strictly ascending. Chunks are not combined, because they may be large."""
    last: pa.Scalar | None = None
    for chunk in texts.chunks:
        if not len(chunk):
            continue
        if last is not None and not pc.less(last, chunk[0]).as_py():
            return False
        if not pc.all(pc.less(chunk[:-1], chunk[1:]), min_count=0).as_py():
            return False
        last = chunk[-1]
    return True
