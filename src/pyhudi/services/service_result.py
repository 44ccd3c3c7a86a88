"""Results of table services: work done, and duration of each phase."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyhudi.config import Options, options
from pyhudi.metrics.action_report import ActionReport
from pyhudi.metrics.publish import publish

_GAUGES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "clean": (("files", "numFilesDeleted"),),
    "rollback": (("files", "numFilesDeleted"),),
    "archive": (("instants", "numInstantsArchived"),),
}
"""Names of Apache Hudi's metrics for the counts of services."""


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """Result of one run of a table service.

    Attributes:
        service: clean, archive, rollback, savepoint or restore.
        table: URI of the table.
        instants: Instants that were completed, or removed from the timeline, oldest first.
        counts: Numbers of files, instants or partitions, by name.
        num_bytes: Bytes that were deleted or written, as far as known.
        millis: Milliseconds by phase.
        reason: Reason why there was nothing to do, or why it is incomplete.
    """

    service: str
    table: str
    instants: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    num_bytes: int = 0
    millis: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)

    def __repr__(self) -> str:
        done = [f"{count:,} {name}" for name, count in self.counts.items() if count]
        if self.num_bytes:
            done.append(f"{self.num_bytes:,} bytes")
        what = ", ".join(done) or "done" if self else "nothing done"
        instants = f" {', '.join(self.instants)}" if self.instants else ""
        why = f" ({self.reason})" if self.reason else ""
        return f"{type(self).__name__}({self.service}{instants}: {what}{why})"

    def line(self) -> str:
        """Return the result as one line of ``key=value``."""
        return self.report("").line()

    def report(self, table_name: str) -> ActionReport:
        """Return the result as the report of an action."""
        gauges = {name: self.counts.get(count, 0) for count, name in _GAUGES.get(self.service, ())}
        return ActionReport(
            self.service,
            self.table,
            table_name,
            self.instants,
            "",
            self.counts,
            self.num_bytes,
            self.millis,
            gauges,
            self.reason,
        )

    def published(self, opts: Options) -> ServiceResult:
        """Write the line to the log ``pyhudi.actions``, call the listeners, and report metrics, according to the
        options (`pyhudi.metrics`). Return the result."""
        publish(self.report(opts.get(options.TABLE_NAME.key, "")), opts)
        return self


class PhaseTimer:
    """Accumulates the durations of named phases."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure the block as a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - started

    @property
    def millis(self) -> dict[str, int]:
        """Milliseconds by phase."""
        return {name: round(seconds * 1000) for name, seconds in self._seconds.items()}
