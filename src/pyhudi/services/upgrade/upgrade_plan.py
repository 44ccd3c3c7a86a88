"""Plans and results of upgrades and downgrades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """Plan of an upgrade or a downgrade of a table.

    Attributes:
        version: Current version of the table.
        to: Target version.
        rolled_back: Failed writes that are rolled back first, oldest first.
        file_slices: Number of file slices that are compacted first.
        instants: Number of instant files of the active timeline that are rewritten for the other timeline layout.
        dropped_indexes: Partitions of the metadata table that the version does not support.
        properties_set: Table properties that are added or changed.
        properties_removed: Table properties that are removed.
    """

    version: int
    to: int
    rolled_back: tuple[str, ...] = ()
    file_slices: int = 0
    instants: int = 0
    dropped_indexes: tuple[str, ...] = ()
    properties_set: Mapping[str, str] = field(default_factory=dict)
    properties_removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.version != self.to

    def __repr__(self) -> str:
        steps = "".join(f"\n  {step}" for step in self.steps())
        return f"UpgradePlan({self.version} to {self.to}: {steps or 'nothing to do'})"

    def steps(self) -> list[str]:
        """Return a description of each step."""
        if not self:
            return []
        steps = []
        if self.rolled_back:
            steps.append(f"roll back failed writes: {', '.join(self.rolled_back)}")
        if self.file_slices:
            steps.append(f"compact {self.file_slices:,} file slices")
        if self.dropped_indexes:
            steps.append(f"drop from the metadata table: {', '.join(self.dropped_indexes)}")
        if self.instants:
            steps.append(f"rewrite {self.instants:,} timeline files and the archived timeline")
        steps += [f"set {key}={value}" for key, value in sorted(self.properties_set.items())]
        steps += [f"remove {key}" for key in self.properties_removed]
        return steps


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """Result of an upgrade or a downgrade. ``millis``: milliseconds by phase."""

    version: int
    to: int
    table: str
    instants: int
    dropped_indexes: tuple[str, ...]
    millis: Mapping[str, int]

    def __bool__(self) -> bool:
        return self.version != self.to

    def __repr__(self) -> str:
        if not self:
            return f"UpgradeResult(nothing done: the table has version {self.to})"
        dropped = f", dropped indexes {', '.join(self.dropped_indexes)}" if self.dropped_indexes else ""
        return f"UpgradeResult({self.version} to {self.to}: {self.instants:,} timeline files{dropped})"

    def line(self) -> str:
        """Return the result as one line of ``key=value``."""
        service = "downgrade" if self.to < self.version else "upgrade"
        millis = "".join(f" {phase}_ms={ms}" for phase, ms in self.millis.items())
        return f"service={service} table={self.table} from={self.version} to={self.to} files={self.instants}{millis}"
