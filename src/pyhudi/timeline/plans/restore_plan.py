"""Plan of a restore: the instants to roll back; and the rollbacks that it has run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.instant import Action, State


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Plan of a restore: instants with their actions, in the order of their rollback.

    Attributes:
        to: Write whose snapshot is restored.
        targets: Requested times and actions, the last write first.
        instant: None while the plan is not in the timeline.
    """

    to: str
    targets: tuple[tuple[str, str], ...]
    instant: str | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def encode(self, version: int) -> bytes:
        """Return the content of ``restore.requested``."""
        record = {
            "instantsToRollback": instant_infos(self.targets),
            "version": 2,
            "savepointToRestoreTimestamp": self.to,
        }
        return encode_record(Action.RESTORE, State.REQUESTED, record, version)

    @classmethod
    def decode(cls, instant: str, data: bytes) -> RestorePlan:
        """Parse a plan of the timeline.

        Raises:
            FormatError: The bytes are not a complete plan.
        """
        record = decode_record(Action.RESTORE, State.REQUESTED, data)
        targets = tuple((info["commitTime"], info["action"]) for info in record["instantsToRollback"])
        return cls(record["savepointToRestoreTimestamp"] or "", targets, instant)


def instant_infos(targets: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    """Return the Avro records (HoodieInstantInfo) of instants, given by requested time and action."""
    return [{"commitTime": requested, "action": action} for requested, action in targets]


def rollbacks_of(restore: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records (HoodieRollbackMetadata) in that of a completed restore (HoodieRestoreMetadata)."""
    return [one for several in (restore["hoodieRestoreMetadata"] or {}).values() for one in several or () if one]
