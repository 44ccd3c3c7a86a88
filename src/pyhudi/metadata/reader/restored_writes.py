"""Check that no restore has undone a write after indexes were built from its files.

Apache Hudi's ``rollback_to_savepoint`` deletes a metadata table that was compacted after the savepoint, builds it anew,
and only then undoes the writes: the new record index, for instance, leads to the file groups of an undone clustering.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES
from pyhudi.metadata.reader.file_completeness_check import written_by
from pyhudi.metadata.reader.initial_instants import is_initial_instant
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.plans.restore_plan import rollbacks_of

_BY_FILE = tuple(f"{partition}/" for partition in (FILES, COLUMN_STATS, BLOOM_FILTERS))
"""Folders of partitions whose records belong to single files. A restore deletes those of the files that it deletes."""


def undone_since_built(metadata: ActiveTimeline, data: ActiveTimeline) -> str | None:
    """Return a write that a restore has undone after indexes in the metadata table were built from its files; None if
    there is none. Both timelines are active ones. Without completion times nothing is found.

    Raises:
        CorruptInstantError: An instant cannot be parsed.
    """
    restores = data.timeline.completed().of_actions(Action.RESTORE)
    last = max((restore.completion or "" for restore in restores), default="")
    earlier = [(i, i.completion) for i in metadata.timeline.completed() if i.completion and i.completion < last]
    built = [done for i, done in earlier if is_initial_instant(i) and _builds_index(metadata, i)]
    if not built:
        return None
    for restore in restores:
        for undone, begun in _rollbacks(data, restore):
            if any(undone < done < begun for done in built):
                return undone
    return None


def _builds_index(metadata: ActiveTimeline, build: Instant) -> bool:
    return any(not path.startswith(_BY_FILE) for path in written_by(metadata, build)["path"].to_pylist())


def _rollbacks(data: ActiveTimeline, restore: Instant) -> Iterator[tuple[str, str]]:
    """Yield each write that a restore has undone, and the time at which its rollback began."""
    for rollback in rollbacks_of(data.completed_record(restore)):
        for undone in rollback["commitsRollback"]:
            yield undone, rollback["startRollbackTime"]
