"""Settings of the change logs that go with base files that are written anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyhudi.config.enums import CdcMode
from pyhudi.format.log import LogOptions, LogSchema


@dataclass(frozen=True, slots=True)
class ChangeLogSettings:
    """Settings of a write's change logs: the mode of supplemental logging, the schema of their blocks
    (`pyhudi.format.log.change_schema.change_schema`), and limits of sizes."""

    mode: CdcMode
    schema: LogSchema
    options: LogOptions = field(default_factory=LogOptions)
