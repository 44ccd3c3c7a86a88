"""Updates by writes of metadata partitions that are being built at the same time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pyhudi.format.file_names import BASE, parse_names, split_paths
from pyhudi.metadata.file_groups.delta_files import ACKNOWLEDGED_KEY
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, FILES, RECORD_INDEX
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.instant import Instant
    from pyhudi.timeline.timeline import Timeline

_LEAVING_KEYS = ("COMPACT", "LOG_COMPACT")


class MissedUpdateDetector:
    """Detector of writes that did not update partitions after those were announced; ``seen`` is the table's timeline of
    that moment.

    Writers of pyhudi say which partitions they have told all, though it may be nothing. Others may look at the table's
    properties once, before they begin, so one that was under way at that moment has to have told whatever its files
    say. Of later ones those are suspected that had something to tell, and have not, to any but the built-in indexes of
    keys, to which many a write has nothing to tell: Apache Hudi keeps secondary and expression indexes only once they
    are declared.
    """

    def __init__(self, seen: Timeline, partitions: Collection[str]) -> None:
        self._under_way = frozenset(i.requested for i in seen.pending())
        self._settled = {i.requested for i in seen.completed().writes()}
        self._partitions = frozenset(partitions)

    def missed(self, data: ActiveTimeline, own: ActiveTimeline) -> bool:
        """Return True if a completed write has left something out; ``own`` is the metadata table's timeline. Looks at
        each write once."""
        for instant in data.timeline.completed().writes():
            if instant.requested in self._settled:
                continue
            if self._left_out(data, own, instant):
                return True
            self._settled.add(instant.requested)
        return False

    def _left_out(self, data: ActiveTimeline, own: ActiveTimeline, instant: Instant) -> bool:
        written = partitions_written(own, instant.requested)
        silent = self._partitions - written - partitions_acknowledged(own, instant.requested)
        if instant.requested not in self._under_way:
            silent -= {RECORD_INDEX, BLOOM_FILTERS}
        return FILES in written and bool(silent) and bool(_concerned(silent, data.commit_metadata(instant)))


def _concerned(partitions: Collection[str], metadata: CommitMetadata) -> set[str]:
    """Partitions, of some, that a write may have to update."""
    names = split_paths(metadata.stats["path"].drop_null())[1]
    base = BASE in pc.unique(parse_names(names)["kind"]).to_pylist()
    found = set()
    for partition in partitions:
        if partition == RECORD_INDEX or is_secondary(partition):
            concerned = metadata.operation not in _LEAVING_KEYS
        elif is_expression(partition):
            concerned = bool(len(names))
        else:
            concerned = base if partition == BLOOM_FILTERS else True
        if concerned:
            found.add(partition)
    return found


def was_written_since(own: ActiveTimeline, instant: str, partitions: Sequence[str]) -> bool:
    """Return True if writes have told one of the partitions something since an indexing instant. That went with what an
    earlier attempt has built; what is built under a later instant is not expected to have it."""
    later = [i.requested for i in own.timeline.completed().writes() if i.order_time > instant]
    return any(partitions_written(own, requested) & set(partitions) for requested in later if requested != instant)


def partitions_written(own: ActiveTimeline, instant: str) -> set[str]:
    """The partitions of the metadata table that a write has told something."""
    found = _delta_of(own, instant)
    return set() if found is None else set(found.stats["partitionPath"].to_pylist())


def partitions_acknowledged(own: ActiveTimeline, instant: str) -> set[str]:
    """The partitions that a write says it has told all, though there may have been nothing."""
    found = _delta_of(own, instant)
    return set() if found is None else set(found.extra.get(ACKNOWLEDGED_KEY, "").split(",")) - {""}


def _delta_of(own: ActiveTimeline, instant: str) -> CommitMetadata | None:
    found = own.timeline.find(instant, Action.DELTA_COMMIT)
    if found is None or not found.is_completed or not own.read(found):
        return None
    return own.commit_metadata(found)
