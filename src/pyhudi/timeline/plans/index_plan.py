"""Indexing action: plans of partitions of the metadata table that are built concurrently with writers.

See docs/format/core.md, section 3 and docs/format/metadata.md, section 6.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.errors import FormatError
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.instant import Action, Instant, State

_VERSION = 1


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Partitions of the metadata table to build.

    ``upto`` is the last write that was completed, together with all earlier ones, when the plan was made; the builder
    may include later ones. ``instant`` is None while the plan is not in the timeline, and ``state`` is its state there.
    ``reason`` explains why there is nothing to do.
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
        """Parse a plan.

        Raises:
            FormatError: The bytes are not a complete plan.
        """
        infos = decode_record(Action.INDEXING, State.REQUESTED, data)["indexPartitionInfos"] or ()
        indexes = [(info["metadataPartitionPath"], info["indexUptoInstant"] or "") for info in infos]
        if not all(name for name, _ in indexes):
            raise FormatError("the plan has an index without a name")
        upto = min((upto for _, upto in indexes), default="")
        return cls(tuple(name for name, _ in indexes), upto, instant.requested, instant.state)

    def scheduled(self, instant: str) -> IndexPlan:
        """Return the same plan with its instant in the timeline."""
        return replace(self, instant=instant, state=State.REQUESTED)

    def encode(self, version: int) -> bytes:
        """Return the content of the requested file for a table of that version."""
        record = {"version": _VERSION, "indexPartitionInfos": _infos(self.partitions, self.upto, version)}
        return encode_record(Action.INDEXING, State.REQUESTED, record, version)


def encode_completed_build(partitions: Sequence[str], upto: str, version: int) -> bytes:
    """Return the content of the completed file: the partitions are built and include all writes up to ``upto``."""
    record = {
        "version": _VERSION,
        "operationType": None,
        "indexPartitionInfos": _infos(partitions, upto, version),
    }
    return encode_record(Action.INDEXING, State.COMPLETED, record, version)


def _infos(partitions: Sequence[str], upto: str, version: int) -> list[dict[str, Any]]:
    more: dict[str, Any] = {"extraMetadata": {}} if version >= 8 else {}
    return [{"version": _VERSION, "metadataPartitionPath": p, "indexUptoInstant": upto, **more} for p in partitions]
