"""Copies of a timeline in the layout of another table version, unused until the table changes its version, and removal
of files that no version needs any more."""

from __future__ import annotations

from pyhudi.format.file_names import file_name_of
from pyhudi.metadata.metadata_layout import metadata_layout
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import SCHEMA_FOLDER
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.conversion.archive_conversion import archive_to_log, archive_to_lsm
from pyhudi.timeline.conversion.layout_conversion import (
    ConvertedFile,
    converted_content,
    converted_files,
    earliest_completion,
)
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.timeline_layout import Layout

_THREADS = 8


def table_layout(version: int) -> Layout:
    """Return the timeline layout of a version, with Apache Hudi's default folders."""
    return Layout.v1() if version < 8 else Layout.v2()


def copy_timeline(active: ActiveTimeline, target: Layout, version: int, timezone: str, *, copied: bool) -> int:
    """Copy a timeline and its archive into another layout. Return the number of files.

    Existing files belong to an interrupted attempt, or an earlier version of the table, and are ignored. The lock is
    held, and nothing is pending.

    Raises:
        CorruptInstantError: A file cannot be parsed.
    """
    storage = active.storage
    remove_timeline(storage, target)
    storage.make_dirs(target.folder)
    storage.make_dirs(target.history)
    files = converted_files(active, target, timezone, copied=copied)

    def copy(file: ConvertedFile) -> None:
        storage.write(file.path, converted_content(active, file.source, version))
        if file.changed_ms is not None:
            storage.set_modified(file.path, file.changed_ms)

    concurrent_map(copy, files, threads=_THREADS)
    if target.version >= 2:
        archive_to_lsm(storage, active.layout, target)
    else:
        archive_to_log(storage, active.layout, target)
    return len(files)


def copy_schema_history(storage: Storage, source: Layout, target: Layout) -> None:
    """Copy the schema history, whose files are named like those of the timeline."""
    for path, instant in _schemas(storage, source):
        name = target.file_name(
            instant.requested, instant.action, instant.state, earliest_completion(instant.requested)
        )
        storage.write(f"{SCHEMA_FOLDER}/{name}", storage.read(path))


def _schemas(storage: Storage, layout: Layout) -> list[tuple[str, Instant]]:
    """Return files of the schema history that are named as in a layout."""
    paths: list[str] = storage.list(SCHEMA_FOLDER)["path"].to_pylist()
    parsed = [(path, layout.parse(file_name_of(path))) for path in paths]
    done = [(path, i) for path, i in parsed if i is not None and i.is_completed]
    return [(path, i) for path, i in done if (i.completion is not None) == (layout.version >= 2)]


def remove_timeline(storage: Storage, layout: Layout) -> None:
    """Delete the instant files of an unused layout, and in layout 2 its archive. Archives of layout 1 are kept, as in
    Apache Hudi."""
    if layout.version >= 2:
        storage.delete_tree(layout.folder)
        return
    paths: list[str] = storage.list(layout.folder)["path"].to_pylist()
    # Pending files first: without them a completed one does not look like a failed write.
    instant_files = [path for path in paths if layout.parse(file_name_of(path)) is not None]
    storage.delete_many(sorted(instant_files, key=lambda path: (not path.endswith((".requested", "inflight")), path)))


def remove_leftovers(storage: Storage, layout: Layout) -> None:
    """Delete the timelines of the other layout, of the table and of its metadata table; ``layout`` is the table's."""
    other = 6 if layout.version >= 2 else 8
    if table_layout(other).folder != layout.folder:
        remove_timeline(storage, table_layout(other))
    remove_timeline(storage, metadata_layout(other))
    kept = {instant.requested for _, instant in _schemas(storage, layout)}
    old = [path for path, instant in _schemas(storage, table_layout(other)) if instant.requested in kept]
    storage.delete_many(old)
