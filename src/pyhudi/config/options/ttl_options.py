"""Options of the time to live of partitions."""

from __future__ import annotations

from pyhudi.config.enums import TtlStrategy
from pyhudi.config.option import choice, flag, integer, maybe_text, names

_TTL = "hoodie.partition.ttl."
_STRATEGY = _TTL + "strategy."

TTL_INLINE = flag(_TTL + "inline", False, "Whether a write drops the partitions that have expired, after its commit.")
TTL_STRATEGY = choice(
    _TTL + "management.strategy.type",
    TtlStrategy.KEEP_BY_TIME,
    "What the age of a partition is counted from: the last write to it, or the write that made it.",
)
TTL_STRATEGY_CLASS = maybe_text(
    _STRATEGY + "class",
    "The same by Apache Hudi's class name, `KeepByTimeStrategy` or `KeepByCreationTimeStrategy`, with or without "
    "package. Overrides the type.",
)
TTL_DAYS = integer(_STRATEGY + "days.retain", -1, "Days after which a partition has expired; -1: never.", least=-1)
TTL_PARTITIONS = names(_STRATEGY + "partition.selected", "Paths of the partitions that may expire; none: all.")
TTL_MAX_PARTITIONS = integer(
    _STRATEGY + "max.delete.partitions",
    1000,
    "Partitions that are dropped at once; the others follow next time.",
    least=1,
)
