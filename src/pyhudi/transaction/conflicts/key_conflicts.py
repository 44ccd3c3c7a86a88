"""Two writers that add the same key at once: each puts it into a file group of its own, so that no file group tells.

An index of keys does: it has one place for each. Who commits later asks it again for the keys that it has added, under
the table's lock, if anybody else has added records since its keys were looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pyhudi.transaction.commit_outcome import Conflicted

if TYPE_CHECKING:
    from pyhudi.metadata.indexes.index_delta import IndexDelta
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.instant import Instant
    from pyhudi.timeline.timeline import Timeline

_LEAVING_KEYS = ("COMPACT", "LOG_COMPACT", "CLUSTER")


def find_key_conflict(
    index: IndexDelta | None, requested: str, begun: Timeline, active: ActiveTimeline
) -> Conflicted | None:
    """The last write that has added records since ``begun`` was loaded, if keys of this one are among those that were
    added since; ``active`` was loaded under the table's lock."""
    if index is None or index.taken is None:
        return None
    last = next((i for i in reversed(_completed_since(begun, active, requested)) if _adds(active, i)), None)
    if last is None:
        return None
    taken = index.taken()
    if not taken:
        return None
    return Conflicted(requested, last, f"{taken} of its new keys were added meanwhile, too, up to {last}")


def _completed_since(begun: Timeline, active: ActiveTimeline, requested: str) -> list[Instant]:
    done = active.timeline.completed().writes()
    return [i for i in done if i.requested != requested and not begun.is_completed(i.requested)]


def _adds(active: ActiveTimeline, instant: Instant) -> bool:
    metadata = active.commit_metadata(instant)
    if metadata.operation in _LEAVING_KEYS:
        return False
    return bool(pc.any(pc.greater(pc.fill_null(metadata.stats["numInserts"], 1), 0)).as_py())
