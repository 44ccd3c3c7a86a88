"""Options of the time to live of partitions."""

from __future__ import annotations

from pyhudi.config.enums import TtlStrategy
from pyhudi.config.option import choice, flag, integer, name_list, optional_text

_TTL = "hoodie.partition.ttl."
_STRATEGY = _TTL + "strategy."

TTL_INLINE = flag(_TTL + "inline", False, "If true, a write drops the partitions that have expired, after its commit.")
TTL_STRATEGY = choice(
    _TTL + "management.strategy.type",
    TtlStrategy.KEEP_BY_TIME,
    "Event from which the age of a partition is measured: its last write, or the write that created it.",
)
TTL_STRATEGY_CLASS = optional_text(
    _STRATEGY + "class",
    "The same strategy by Apache Hudi's class name, `KeepByTimeStrategy` or `KeepByCreationTimeStrategy`, with or "
    "without package. Overrides the type.",
)
TTL_DAYS = integer(
    _STRATEGY + "days.retain", -1, "Days after which a partition expires; -1: never.", minimum=-1, maximum=365_000
)
TTL_PARTITIONS = name_list(
    _STRATEGY + "partition.selected", "Paths of the partitions that may expire. By default, all may."
)
TTL_MAX_PARTITIONS = integer(
    _STRATEGY + "max.delete.partitions",
    1000,
    "Maximum number of partitions that are dropped at once; the remaining ones follow with later writes.",
    minimum=1,
)
