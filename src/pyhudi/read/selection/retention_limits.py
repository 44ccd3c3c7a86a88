"""Limits of time travel: the history retained by cleaning, and instants with pending writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptInstantError, QueryError
from pyhudi.format.file_names import BASE, file_name_of, parse_names
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_slicing import instant_mask
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import has_archived_after
from pyhudi.timeline.instant import Action, Instant


def check_as_of(active: ActiveTimeline, as_of: str) -> None:
    """Refuse a time travel whose result would be incomplete, or could still change.

    Raises:
        QueryError: A write at or before ``as_of`` is pending, or the cleaner has removed files of that time.
    """
    pending = first_pending_write(active)
    if pending is not None and as_of >= pending.requested:
        raise QueryError(
            f"the result of time travel to {as_of} can still change: the {pending.action} {pending.requested} is "
            f"pending and would belong to it. Use a time before {pending.requested}, or the latest snapshot, or "
            "let a writer complete that instant or roll it back"
        )
    earliest = retained_from(active, as_of)
    if earliest is not None and as_of < earliest:
        raise QueryError(
            f"time travel to {as_of}: the cleaner has removed files of that time. The earliest time that can be "
            f"read is {earliest}; retain more commits with hoodie.clean.commits.retained, or set a savepoint"
        )


def first_pending_write(active: ActiveTimeline) -> Instant | None:
    """Return the oldest commit, deltacommit or replacecommit that is neither completed nor a table service."""
    for instant in active.timeline.pending():
        if instant.action in (Action.COMMIT, Action.DELTA_COMMIT) or (
            instant.action == Action.REPLACE_COMMIT and not _is_clustering(active, instant)
        ):
            return instant
    return None


def _is_clustering(active: ActiveTimeline, instant: Instant) -> bool:
    """Return True if a pending instant is certainly a clustering."""
    try:
        return is_clustering(active, instant)
    except CorruptInstantError:
        return False


def retained_from(active: ActiveTimeline, as_of: str) -> str | None:
    """Return the earliest requested time whose snapshot is certainly complete, if ``as_of`` is before it; otherwise
    None.

    A savepointed instant is complete regardless of cleaning, up to the next write, which may be archived.
    """
    timeline = active.timeline
    cleans = _cleans_after(active, as_of)
    if not cleans:
        return None
    last_write = timeline.writes().completed().up_to(as_of).last
    if (
        last_write is not None
        and timeline.find(last_write.requested, Action.SAVEPOINT) is not None
        and not has_archived_after(active, last_write.requested, as_of)
    ):
        return None
    return _cleaned_before(active, cleans, as_of, files_before=False)


def retained_by_cleaning(active: ActiveTimeline, as_of: str) -> str | None:
    """Return what :func:`retained_from` does, without regard to savepoints.

    From that time on, the files before each write are retained, too: a cleaner keeps the version that is current when
    the earliest commit to retain begins.
    """
    return _cleaned_before(active, _cleans_after(active, as_of), as_of, files_before=True)


def _cleans_after(active: ActiveTimeline, as_of: str) -> list[Instant]:
    """Return the completed cleans after a time. No snapshot from the time of a clean on needs the files that it
    deletes."""
    return [i for i in active.timeline if i.action == Action.CLEAN and i.is_completed and i.requested > as_of]


def _cleaned_before(active: ActiveTimeline, cleans: list[Instant], as_of: str, *, files_before: bool) -> str | None:
    """Return the latest bound of some cleans that is after ``as_of``; None if there is none.

    ``files_before``: the files before each write are needed, too.

    A change of the policy or a clean of some partitions may record an earlier bound than a clean before. A clean by
    commits records it; a clean by file versions does not, so its deleted files are used.
    """
    # the newest clean mostly has the latest bound
    for clean in reversed(cleans):
        earliest = _retained_by(active, clean, as_of, files_before=files_before)
        if earliest is not None:
            return earliest
    return None


def _retained_by(active: ActiveTimeline, clean: Instant, as_of: str, *, files_before: bool) -> str | None:
    """Return the bound of one clean, as :func:`_cleaned_before`.

    With cleaning by versions a snapshot is complete from the newest deletion on: a deleted base file was needed until
    the next version of its group, which is at the latest the last write before the clean. Archived cleans may have
    deleted files from before the active timeline, which no other instant records.
    """
    record = active.completed_record(clean)
    recorded: str = record["earliestCommitToRetain"] or ""
    if recorded:
        return recorded if as_of < recorded else None
    writes = active.timeline.writes().completed()
    deleted = _deleted_base_files(record["partitionMetadata"])
    if deleted.num_rows and pc.min(deleted["instant"]).as_py() <= as_of:
        last = writes.up_to(clean.requested).last
        needed_until = last.requested if last is not None else clean.requested
        if as_of < needed_until and not files_before:
            needed_until = _last_successor(active, deleted) or needed_until
        if as_of < needed_until:
            return needed_until
    start = active.timeline.start
    return start if start is not None and as_of < start else None


def _deleted_base_files(partitions: Mapping[str, Any]) -> pa.Table:
    """Return the base files in the metadata of a clean: partition, file_id, instant."""
    patterns = [(path, file_name_of(n)) for path, p in partitions.items() for n in p["deletePathPatterns"]]
    parsed = parse_names(pa.array([name for _, name in patterns], pa.string()))
    files = pa.table(
        [pa.array([path for path, _ in patterns], pa.string()), parsed["file_id"], parsed["instant"]],
        names=["partition", "file_id", "instant"],
    )
    return files.filter(pc.equal(parsed["kind"], BASE))


def _last_successor(active: ActiveTimeline, deleted: pa.Table) -> str | None:
    """Return the instant from which on no snapshot needs deleted base files, as their file groups have later ones in
    storage; None if one has not."""
    partitions = pc.unique(deleted["partition"]).to_pylist()
    present, _ = list_files(active.storage, partitions, (BASE,))
    present = present.filter(instant_mask(present["instant"], active.timeline.contains_or_before_start))
    present = present.select(["partition", "file_id", "instant"]).rename_columns(["partition", "file_id", "successor"])
    numbered = deleted.append_column("number", pa.array(range(deleted.num_rows)))
    later = numbered.join(present, ["partition", "file_id"], join_type="inner")
    later = later.filter(pc.greater(later["successor"], later["instant"]))
    first = later.group_by("number").aggregate([("successor", "min")])
    if first.num_rows < deleted.num_rows:
        return None
    return str(pc.max(first["successor_min"]).as_py())
