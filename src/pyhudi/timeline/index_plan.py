"""The indexing action: plans of partitions of the metadata table that are built while writers go on.

Docs/format/core.md, section 3 and docs/format/metadata.md, section 6.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyhudi.errors import FormatError
from pyhudi.timeline.action_metadata import decode_record, encode_record
from pyhudi.timeline.instant import Action, Instant, State

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline

_VERSION = 1


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Partitions of the metadata table that are to be built.

    ``upto`` is the last write that was completed, with all before it, when the plan was made; who builds may take in
    more. ``instant`` is None while the plan is not on the timeline, ``state`` how far it has come there. ``reason``
    says why there is nothing to do.
    """

    partitions: tuple[str, ...] = ()
    upto: str = ""
    instant: str | None = None
    state: State | None = None
    reason: str = ""

    def __len__(self) -> int:
        return len(self.partitions)

    @classmethod
    def decode(cls, instant: Instant, data: bytes) -> IndexPlan:
        """Raises FormatError when the bytes are no whole plan."""
        infos = decode_record(Action.INDEXING, State.REQUESTED, data)["indexPartitionInfos"] or ()
        found = [(info["metadataPartitionPath"], info["indexUptoInstant"] or "") for info in infos]
        if not all(name for name, _ in found):
            raise FormatError("the plan has an index without a name")
        upto = min((upto for _, upto in found), default="")
        return cls(tuple(name for name, _ in found), upto, instant.requested, instant.state)

    def scheduled(self, instant: str) -> IndexPlan:
        """The same plan, on the timeline."""
        return replace(self, instant=instant, state=State.REQUESTED)

    def encode(self, version: int) -> bytes:
        """The requested file of the timeline, for a table of that version."""
        record = {"version": _VERSION, "indexPartitionInfos": _infos(self.partitions, self.upto, version)}
        return encode_record(Action.INDEXING, State.REQUESTED, record, version)


def encode_built(partitions: Sequence[str], upto: str, version: int) -> bytes:
    """The completed file of the timeline: the partitions are built, and know all writes up to one."""
    record = {
        "version": _VERSION,
        "operationType": None,
        "indexPartitionInfos": _infos(partitions, upto, version),
    }
    return encode_record(Action.INDEXING, State.COMPLETED, record, version)


def _infos(partitions: Sequence[str], upto: str, version: int) -> list[dict[str, Any]]:
    more: dict[str, Any] = {"extraMetadata": {}} if version >= 8 else {}
    return [{"version": _VERSION, "metadataPartitionPath": p, "indexUptoInstant": upto, **more} for p in partitions]


def pending_index_plans(active: ActiveTimeline) -> list[IndexPlan]:
    """The plans that are not completed, oldest first.

    Raises:
        CorruptInstantError: a plan cannot be read.
    """
    return [read_index_plan(active, i) for i in active.timeline.pending().of_actions(Action.INDEXING)]


def read_index_plan(active: ActiveTimeline, instant: Instant) -> IndexPlan:
    """The plan of an indexing instant.

    Raises:
        CorruptInstantError: it cannot be read.
    """
    requested = active.in_state(instant, State.REQUESTED)
    with active.parsing(requested or instant):
        if requested is None:
            raise FormatError("there is no requested file with the plan")
        return IndexPlan.decode(instant, active.read(requested))


def last_contiguous_write(active: ActiveTimeline) -> str | None:
    """The last completed write before which none is pending; None without one."""
    last = None
    for instant in active.timeline.writes():
        if not instant.is_completed:
            break
        last = instant.requested
    return last
