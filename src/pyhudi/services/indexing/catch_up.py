"""Updates of metadata partitions by writes that run concurrently with their builds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow.compute as pc

from pyhudi.format.file_names import BASE, file_names_of, parse_names
from pyhudi.metadata.file_groups.delta_commit_writer import acknowledged_partitions
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, FILES, RECORD_INDEX
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.operation_types import COMPACTIONS
from pyhudi.timeline.timeline import Timeline


class MissedUpdateDetector:
    """Detector of writes that did not update partitions after their announcement.

    Writers of pyhudi record the partitions that they have updated completely, even without changes. Others may read the
    table's properties only once, at their start, so a write that was running at that time must have updated the
    partitions regardless of its files. Later writes that should have updated partitions and have not are considered
    missed, except for the built-in indexes of keys, which many writes do not affect: Apache Hudi maintains secondary
    and expression indexes only once they are declared.
    """

    def __init__(self, timeline: Timeline, partitions: Collection[str]) -> None:
        self._pending_at_start = frozenset(i.requested for i in timeline.pending())
        self._included = frozenset(i.requested for i in timeline.completed().writes())
        self._examined = set(self._included)
        self._partitions = frozenset(partitions)

    def missed(self, data_timeline: ActiveTimeline, metadata_timeline: ActiveTimeline) -> bool:
        """Return True if a completed write has missed an update, or if one that the build includes was rolled back.
        Each completed write is examined once.

        Args:
            data_timeline: Timeline of the table.
            metadata_timeline: Timeline of the metadata table.
        """
        if not all(map(data_timeline.timeline.contains_or_before_start, self._included)):
            return True
        for instant in data_timeline.timeline.completed().writes():
            if instant.requested in self._examined:
                continue
            if self._is_missing(data_timeline, metadata_timeline, instant):
                return True
            self._examined.add(instant.requested)
        return False

    def _is_missing(self, data_timeline: ActiveTimeline, metadata_timeline: ActiveTimeline, instant: Instant) -> bool:
        written = partitions_written(metadata_timeline, instant.requested)
        silent = self._partitions - written - partitions_acknowledged(metadata_timeline, instant.requested)
        if instant.requested not in self._pending_at_start:
            silent -= {RECORD_INDEX, BLOOM_FILTERS}
        return FILES in written and bool(silent) and bool(_concerned(silent, data_timeline.commit_metadata(instant)))


def _concerned(partitions: Collection[str], metadata: CommitMetadata) -> set[str]:
    """Return those of the partitions that a write may have to update."""
    names = file_names_of(metadata.stats["path"].drop_null())
    base = BASE in pc.unique(parse_names(names)["kind"]).to_pylist()
    affected = set()
    for partition in partitions:
        if partition == RECORD_INDEX or is_secondary(partition):
            concerned = metadata.operation not in COMPACTIONS
        elif is_expression(partition):
            concerned = bool(len(names))
        else:
            concerned = base if partition == BLOOM_FILTERS else True
        if concerned:
            affected.add(partition)
    return affected


def was_written_since(metadata_timeline: ActiveTimeline, instant: str, partitions: Sequence[str]) -> bool:
    """Return True if writes have updated one of the partitions since an indexing instant. These updates are lost with
    the files of an earlier attempt; a build with a later instant is not expected to include them."""
    later = [i.requested for i in metadata_timeline.timeline.completed().writes() if i.order_time > instant]
    return any(
        partitions_written(metadata_timeline, requested) & set(partitions)
        for requested in later
        if requested != instant
    )


def partitions_written(metadata_timeline: ActiveTimeline, instant: str) -> set[str]:
    """Return the partitions of the metadata table that a write has updated."""
    delta = _delta_of(metadata_timeline, instant)
    return set() if delta is None else set(delta.stats["partitionPath"].to_pylist())


def partitions_acknowledged(metadata_timeline: ActiveTimeline, instant: str) -> set[str]:
    """Return the partitions that a write has recorded as completely updated, even without changes."""
    delta = _delta_of(metadata_timeline, instant)
    return set() if delta is None else acknowledged_partitions(delta)


def _delta_of(metadata_timeline: ActiveTimeline, instant: str) -> CommitMetadata | None:
    delta_commit = metadata_timeline.timeline.find(instant, Action.DELTA_COMMIT)
    if delta_commit is None or not delta_commit.is_completed or not metadata_timeline.read(delta_commit):
        return None
    return metadata_timeline.commit_metadata(delta_commit)
