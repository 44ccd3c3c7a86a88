"""Settings of the CDC logs of rewritten base files."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyhudi.config.enums import CdcMode
from pyhudi.format.log import LogOptions, LogSchema


@dataclass(frozen=True, slots=True)
class CdcSettings:
    """Settings of a write's CDC logs: mode of supplemental logging, schema of their blocks
    (`pyhudi.format.log.cdc_schema.cdc_schema`), and size limits."""

    mode: CdcMode
    schema: LogSchema
    options: LogOptions = field(default_factory=LogOptions)
