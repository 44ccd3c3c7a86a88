"""A key config for tests, without a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, parse_partition_fields


@dataclass(frozen=True)
class FakeConfig:
    keygen: KeyGenType
    record_keys: tuple[str, ...] = ("id",)
    partition: str = ""
    version: int = 9
    hive_style: bool = False
    url_encode: bool = False
    slash_dates: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        return parse_partition_fields(self.partition)
