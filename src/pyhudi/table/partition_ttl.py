"""Partition TTL: detection of expired partitions.

The age of a partition is measured from its newest write, or from the write that created it. Source: the strategies
``KeepByTimeStrategy`` and ``KeepByCreationTimeStrategy`` of Apache Hudi. The former considers base files only, so that
a partition of a merge-on-read table could expire although its logs are updated; here log files are considered, too. To
both a partition that was just bootstrapped is the oldest of all, because the instants of bootstraps are constants; here
the time of the bootstrap counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import TtlStrategy
from pyhudi.errors import ConfigError, InvalidOptionError
from pyhudi.storage.clock import now_ms
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.bootstrap_index import BOOTSTRAP_INSTANTS
from pyhudi.table.partition_metadata import partition_metadata_ms, read_partition_metadata
from pyhudi.table.view.file_slicing import has_log_files
from pyhudi.table.view.file_system_view import FileSystemView, OpenTable
from pyhudi.timeline.archive.archived_timeline import archived_completions
from pyhudi.timeline.instant import format_instant, instant_of_millis, parse_instant

_PACKAGE = "org.apache.hudi.table.action.ttl.strategy."
_CLASSES = {
    "KeepByTimeStrategy": TtlStrategy.KEEP_BY_TIME,
    "KeepByCreationTimeStrategy": TtlStrategy.KEEP_BY_CREATION_TIME,
}
_LOG_INSTANT = r"_(?P<instant>\d{14,17})\.log\.\d+[^/]*$"
_UNKNOWN = "9" * 17
"""Time of a bootstrap that is not known: its partitions are kept."""


def ttl_strategy(opts: Options) -> TtlStrategy:
    """Return the strategy of the options, which name its class or its type.

    Raises:
        InvalidOptionError: The class is unknown.
    """
    name = opts.get_typed(options.TTL_STRATEGY_CLASS)
    if name is None:
        return opts.get_typed(options.TTL_STRATEGY)
    strategy = _CLASSES.get(name.removeprefix(_PACKAGE))
    if strategy is None:
        raise InvalidOptionError(options.TTL_STRATEGY_CLASS.key, name, ", ".join(_CLASSES))
    return strategy


@dataclass(frozen=True, slots=True)
class PartitionTtl:
    """Partition TTL policy.

    Attributes:
        strategy: Event from which the age of a partition is measured.
        days: Age in days from which a partition is expired.
        selected: Paths of the partitions that may expire; empty: all.
        max_partitions: Maximum number of partitions that are dropped at once.
    """

    strategy: TtlStrategy
    days: int
    selected: tuple[str, ...] = ()
    max_partitions: int = 1000

    @classmethod
    def from_options(cls, opts: Options) -> PartitionTtl:
        """Create the policy from the options.

        Raises:
            ConfigError: No TTL is set, or the strategy is unknown.
        """
        days = opts.get_typed(options.TTL_DAYS)
        if days <= 0:
            raise ConfigError(f"{options.TTL_DAYS.key}={days}: no partition would ever expire; set a number of days")
        selected, limit = opts.get_typed(options.TTL_PARTITIONS), opts.get_typed(options.TTL_MAX_PARTITIONS)
        return cls(ttl_strategy(opts), days, selected, limit)

    def expired(self, table: OpenTable, view: FileSystemView) -> list[str]:
        """Return the expired partitions of a table with its file-system view, sorted, limited to the number that is
        dropped at once."""
        if not table.config.partition_fields:
            return []
        now = parse_instant(instant_of_millis(now_ms(), table.config.timezone))
        limit = format_instant(now - timedelta(days=self.days))
        slices = view.latest_slices()
        if self.selected:
            slices = slices.filter(pc.is_in(slices["partition"], pa.array(self.selected, pa.string())))
        last = newest_instants(slices)
        if self.strategy is TtlStrategy.KEEP_BY_CREATION_TIME:
            old = _created_before(table, last["partition"].to_pylist(), limit)
        else:
            old = _without_bootstrapped(table, last.filter(pc.less(last["instant"], limit)), limit)
            if table.config.version < 8:
                old = _without_late_logs(table, slices, old, limit)
        return sorted(old)[: self.max_partitions]

    def __str__(self) -> str:
        return f"{self.strategy}, {self.days} days"


@dataclass(frozen=True, slots=True)
class TtlResult:
    """Result of a deletion of expired partitions: their paths, the instant of the commit that dropped them (None if
    there was nothing to do, or for a dry run), and the reason if there was nothing to do."""

    partitions: tuple[str, ...] = ()
    instant: str | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.partitions)


def newest_instants(slices: pa.Table) -> pa.Table:
    """Return the newest instant (``instant``) in the names of the files of each ``partition``."""
    logs = slices["log_paths"].combine_chunks()
    instants = pc.struct_field(pc.extract_regex(pc.list_flatten(logs), _LOG_INSTANT), "instant")
    of_logs = slices["partition"].combine_chunks().take(pc.list_parent_indices(logs))
    names = ["partition", "instant"]
    base = pa.table([slices["partition"], slices["base_instant"]], names=names)
    times = pa.concat_tables([base, pa.table([of_logs, instants.cast(pa.string())], names=names)])
    return times.group_by("partition").aggregate([("instant", "max")]).rename_columns(names)


def _created_before(table: OpenTable, partitions: list[str], limit: str) -> list[str]:
    """Return those of the partitions that were created before an instant."""

    def created(partition: str) -> str:
        made = read_partition_metadata(table.storage, partition)
        return _UNKNOWN if made is None else made.commit_time

    instants = pa.array(concurrent_map(created, partitions), pa.string())
    made = pa.table([pa.array(partitions, pa.string()), instants], names=["partition", "instant"])
    return _without_bootstrapped(table, made.filter(pc.less(made["instant"], limit)), limit)


def _without_bootstrapped(table: OpenTable, old: pa.Table, limit: str) -> list[str]:
    """Return the partitions, except those whose instant is that of a bootstrap that is not older than ``limit``."""
    fixed = pc.is_in(old["instant"], value_set=pa.array(BOOTSTRAP_INSTANTS))
    bootstrapped = old.filter(fixed)
    partitions: list[str] = old.filter(pc.invert(fixed))["partition"].to_pylist()
    if not bootstrapped.num_rows:
        return partitions
    times = _completions_of_bootstraps(table)
    rows = zip(bootstrapped["partition"].to_pylist(), bootstrapped["instant"].to_pylist(), strict=True)

    def time_of(row: tuple[str, str]) -> tuple[str, str]:
        partition, instant = row
        return partition, times.get(instant) or _marked_at(table, partition)

    return partitions + [path for path, done in concurrent_map(time_of, rows) if done < limit]


def _completions_of_bootstraps(table: OpenTable) -> dict[str, str]:
    """Return the completion times of the table's bootstraps by instant, as far as the timeline has them."""
    active = table.active_timeline()
    archived = archived_completions(table.storage, active.layout, BOOTSTRAP_INSTANTS)
    times = {instant: active.timeline.completion_of(instant) or archived.get(instant) for instant in BOOTSTRAP_INSTANTS}
    return {instant: done for instant, done in times.items() if done is not None}


def _marked_at(table: OpenTable, partition: str) -> str:
    """Return when the folder was marked as a partition, as an instant."""
    marked = partition_metadata_ms(table.storage, partition)
    return _UNKNOWN if marked is None else instant_of_millis(marked, table.config.timezone)


def _without_late_logs(table: OpenTable, slices: pa.Table, partitions: list[str], limit: str) -> list[str]:
    """Return the partitions without logs that may be newer than an instant.

    In tables of version 6 the names of log files do not contain their instant, so commits are read as far as the active
    timeline reaches.
    """
    logged = set(slices["partition"].filter(has_log_files(slices)).to_pylist())
    if not logged & set(partitions):
        return partitions
    active = table.active_timeline()
    writes = list(active.timeline.writes().completed())
    if not writes or writes[0].requested > limit:
        return [path for path in partitions if path not in logged]
    late: set[str] = set()
    for write in writes:
        if write.requested >= limit:
            late.update(pc.unique(active.commit_metadata(write).stats["partitionPath"]).to_pylist())
    return [path for path in partitions if path not in late]
