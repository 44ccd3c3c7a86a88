"""Result of the trigger of a table service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TriggerResult:
    """Result of a trigger: true if the service is due; with the reason."""

    is_due: bool
    reason: str

    def __bool__(self) -> bool:
        return self.is_due
