"""Results of table services: what was done, how much, and how long each phase took."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

_log = logging.getLogger("pyhudi.services")


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """What one run of a table service did.

    Attributes:
        service: clean, archive, rollback, savepoint or restore.
        table: the address of the table.
        instants: the instants that were completed, or that left the timeline, oldest first.
        counts: numbers of files, instants or partitions, by name.
        num_bytes: bytes that were deleted or written, as far as they are known.
        millis: milliseconds by phase.
        reason: why nothing was done, or what was left.
    """

    service: str
    table: str = ""
    instants: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    num_bytes: int = 0
    millis: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)

    def line(self) -> str:
        """Return the result as one line of ``key=value``."""
        parts: dict[str, object] = {
            "service": self.service,
            "table": self.table,
            "instants": ",".join(self.instants[:3]) + (",…" if len(self.instants) > 3 else ""),
            **self.counts,
            "bytes": self.num_bytes,
            **{f"{phase}_ms": ms for phase, ms in self.millis.items()},
        }
        text = " ".join(f"{key}={value}" for key, value in parts.items())
        return f'{text} reason="{self.reason}"' if self.reason else text

    def logged(self) -> ServiceResult:
        """Write the line to the log ``pyhudi.services``, unless nothing was done; returns the result."""
        level = logging.INFO if self else logging.DEBUG
        _log.log(level, "%s", self.line(), extra={"pyhudi_service": self.service, "pyhudi_counts": dict(self.counts)})
        return self


class Phases:
    """Adds up the time of named phases."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the block as a phase."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - begun

    @property
    def millis(self) -> dict[str, int]:
        """Whole milliseconds by phase."""
        return {name: round(seconds * 1000) for name, seconds in self._seconds.items()}
