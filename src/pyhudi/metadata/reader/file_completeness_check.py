"""Check that all files of completed instants of a metadata table exist and are complete.

Without a missing file its records would be lost without notice: some files would be missing in a list of files.
Therefore the instants still in the active timeline are read; older ones have been compacted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import HudiError, MetadataTableError
from pyhudi.format.file_names import BASE, file_name_of, file_names_of, parse_names
from pyhudi.metadata.file_groups.delta_commit_writer import INIT_TOKEN
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.reader.initial_instants import V1_LENGTH, is_initial_instant
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant
from pyhudi.timeline.timeline import Timeline

_READ_THREADS = 8
_READ_ALONE = 2
"""Files to read for which threads do not pay: a write and the clean after it add two."""
_FIRST_INSTANTS = "0" * 14
"""Prefix of instants that build a partition."""
WRITTEN_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("previous", pa.string())])
"""Path, size in bytes, and the instant of the base file that precedes it in its file group."""


class _WrittenFile(NamedTuple):
    """A file as of `WRITTEN_SCHEMA`, with its file group and the instant in its name."""

    path: str
    size: int | None
    previous: str | None
    file_id: str
    name_instant: str


def check_complete(active: ActiveTimeline, effective: Timeline, partition: str, files: pa.Table) -> None:
    """Check the ``files`` (`FILE_SCHEMA`) of a partition against the files written by the ``effective`` instants.

    Raises:
        MetadataTableError: A file is missing, or shorter than written.
    """
    base = files.filter(pc.equal(files["kind"], BASE))
    # Files of a running compaction are not used yet.
    compacting = effective.pending().of_actions(Action.COMPACTION).requested_times
    base = base.filter(pc.invert(pc.is_in(base["instant"], value_set=pa.array(compacting, pa.string()))))
    newest: dict[str, str] = {}
    for file_id, instant in zip(base["file_id"].to_pylist(), base["instant"].to_pylist(), strict=True):
        newest[file_id] = max(instant, newest.get(file_id, ""))
    groups = set(files["file_id"].to_pylist())
    since = min(newest.values()) if newest and len(newest) == len(groups) else ""
    built_at = _built_at(files, effective)
    instants = [
        i
        for i in effective.completed()
        if i.action in WRITE_ACTIONS and i.requested >= since and (i.completion is None or i.completion >= built_at)
    ]
    name_instants = set(pc.unique(files["instant"]).to_pylist())
    sizes = dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))
    problems: list[tuple[Instant, str]] = []
    for instant, written in zip(instants, _written_by_all(active, instants), strict=True):
        for file in _files_of_partition(written, partition):
            if newest.get(file.file_id, "") > instant.requested:
                continue
            if instant.completion is None and _is_of_earlier_build(instant, file, built_at, name_instants):
                continue
            problem = _problem_of(active.storage, instant, file, sizes)
            if problem is not None:
                problems.append((instant, problem))
    if problems:
        built_at = built_at or _archived_build(active, files, effective, partition)
    for instant, problem in problems:
        if instant.completion is None or instant.completion >= built_at:
            raise MetadataTableError(problem)


def _problem_of(storage: Storage, instant: Instant, file: _WrittenFile, sizes: Mapping[str, int]) -> str | None:
    path = f"{METADATA_FOLDER}/{file.path}"
    if path not in sizes:
        return f"{storage.uri(path)}, written by {instant.requested}, is missing"
    if sizes[path] < (file.size or 0):
        return f"{storage.uri(path)} has {sizes[path]} bytes instead of {file.size}"
    return None


def _written_by_all(active: ActiveTimeline, instants: Sequence[Instant]) -> list[pa.Table]:
    """Return the files written by each instant; those not cached are read on threads."""
    unknown = [i for i in instants if CACHE.find(_key(active, i)) is None]
    if len(unknown) > _READ_ALONE:
        written = dict(
            zip(
                unknown,
                concurrent_map(lambda i: written_by(active, i), unknown, threads=_READ_THREADS),
                strict=True,
            )
        )
    else:
        written = {}
    return [written[i] if i in written else written_by(active, i) for i in instants]


def _built_at(files: pa.Table, effective: Timeline) -> str:
    """Return the time at which the partition was built; earlier writes belong to a former partition with its name."""
    starts = pc.or_(
        pc.starts_with(files["instant"], _FIRST_INSTANTS), pc.match_substring(files["path"], f".log.1_{INIT_TOKEN}")
    )
    instants = pc.unique(files.filter(pc.fill_null(starts, False))["instant"]).drop_null().to_pylist()
    # A partition that was built concurrently with writes includes those that completed after its instant.
    times = [effective.completion_of(i) if i.startswith(_FIRST_INSTANTS) else i for i in instants]
    return min((time for time in times if time is not None), default="")


def _archived_build(active: ActiveTimeline, files: pa.Table, effective: Timeline, partition: str) -> str:
    """Return the time at which the partition was built if that instant has been archived, otherwise an empty text.

    Apache Hudi numbers builds from 0, so it archives a new one before older writes to a former partition with its name.
    It may use a number again after that, so the archived instant must have written to the partition.
    """
    names = pc.unique(files["instant"]).drop_null().to_pylist()
    builds = {i for i in names if i.startswith(_FIRST_INSTANTS) and i not in effective}
    if active.layout.version < 2 or not builds:
        return ""
    archived = read_archived_timeline(active.storage, active.layout, up_to=max(builds)).to_pylist()
    times: dict[str, str] = {
        row["requested"]: row["completion"]
        for row in archived
        if row["requested"] in builds and row["action"] in WRITE_ACTIONS and _wrote_to(row["metadata"], partition)
    }
    return min(times.values()) if times.keys() == builds else ""


def _wrote_to(metadata: bytes | None, partition: str) -> bool:
    """Return True if archived commit metadata name a file of a partition. Those of an empty file name none."""
    return bool(_files_of_partition(_written(metadata), partition)) if metadata else False


def _is_of_earlier_build(instant: Instant, file: _WrittenFile, built_at: str, name_instants: set[str]) -> bool:
    """Return True if a file is one of a partition that was rebuilt since, on a timeline without completion times.

    There the instants of an earlier build, and of compactions of its files, may be later than that of the last build.
    In delta commits only builds write base files. A compaction of the last build follows one of its base files, and log
    files are named after such a file, unless they were written before a downgrade.

    Args:
        instant: The instant that has written the file.
        file: The file.
        built_at: Instant of the last build.
        name_instants: Instants in the names of the files of the partition.
    """
    if file.name_instant < built_at:
        return True
    if file_name_of(file.path)[:1] == ".":
        return len(built_at) > V1_LENGTH and file.name_instant not in name_instants
    if instant.requested in name_instants:
        return False
    return instant.action == Action.DELTA_COMMIT or file.previous not in name_instants


def _key(active: ActiveTimeline, instant: Instant) -> tuple[object, ...]:
    return active.storage.root, active.path(instant), active.stamp(instant)


def written_by(active: ActiveTimeline, instant: Instant) -> pa.Table:
    """Return the files that an instant of the metadata table has written (`WRITTEN_SCHEMA`), with paths relative to
    it."""

    def make() -> tuple[pa.Table, int]:
        data = active.read(instant)
        if not data:
            # Apache Hudi's readers accept an empty completed file.
            return WRITTEN_SCHEMA.empty_table(), 1
        with active.parsing(instant):
            table = _written(data)
        return table, table.nbytes

    try:
        if active.stamp(instant) is None or (instant.completion is None and is_initial_instant(instant)):
            return make()[0]  # Initial ones have the names that they had in a metadata table built before.
        table: pa.Table = CACHE.get(_key(active, instant), make)
    except HudiError as error:
        raise MetadataTableError(f"cannot determine the files written by {instant.requested}: {error}") from error
    return table


def _written(metadata: bytes) -> pa.Table:
    stats = decode_commit(metadata).stats
    return pa.table([stats["path"], stats["fileSizeInBytes"], stats["prevCommit"]], schema=WRITTEN_SCHEMA)


def _files_of_partition(written: pa.Table, partition: str) -> list[_WrittenFile]:
    partition_files = written.filter(pc.fill_null(pc.starts_with(written["path"], f"{partition}/"), False))
    if not partition_files.num_rows:
        return []
    names = parse_names(file_names_of(partition_files["path"]))
    columns = (*partition_files.columns, names["file_id"], names["instant"])
    return [_WrittenFile(*values) for values in zip(*(column.to_pylist() for column in columns), strict=True)]
