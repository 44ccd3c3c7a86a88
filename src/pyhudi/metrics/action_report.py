"""Report of one action on a table: a write, or a run of a table service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ActionReport:
    """Report of one action.

    Attributes:
        action: Name as in the timeline (commit, deltacommit, replacecommit, compaction, logcompaction, clean, rollback,
            savepoint, restore), ``archive``, or ``metadata_compaction`` for compactions of the metadata table.
        table: URI of the table.
        table_name: Name of the table (``hoodie.table.name``).
        instants: Requested times of completed instants, oldest first; empty if there was nothing to do.
        operation: Operation as in commit metadata, such as UPSERT; empty for services that have none.
        counts: Numbers of records, files, partitions or instants, by name.
        num_bytes: Bytes written or deleted.
        millis: Milliseconds by consecutive phase; their sum is the duration of the action.
        gauges: Values by the names of Apache Hudi's metrics.
        reason: Reason why there was nothing to do, or why it is incomplete.
    """

    action: str
    table: str = ""
    table_name: str = ""
    instants: tuple[str, ...] = ()
    operation: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    num_bytes: int = 0
    millis: Mapping[str, int] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def duration_millis(self) -> int:
        """Total milliseconds of all phases."""
        return sum(self.millis.values())

    def line(self) -> str:
        """Return the report as one line of ``key=value``."""
        shown = ",".join(self.instants[:3]) + (",…" if len(self.instants) > 3 else "")
        parts: dict[str, object] = {"action": self.action, "table": self.table, "instants": shown}
        if self.operation:
            parts["operation"] = self.operation
        parts |= {**self.counts, "bytes": self.num_bytes, **{f"{name}_ms": ms for name, ms in self.millis.items()}}
        text = " ".join(f"{key}={value}" for key, value in parts.items())
        return f'{text} reason="{self.reason}"' if self.reason else text
