"""Selection of the file slices of a compaction: Apache Hudi's strategies, on Arrow tables of operations.

A strategy first selects partitions, then orders and limits their operations. It also returns the partitions with
remaining operations, which are recorded in the plan. The rules are those of Apache Hudi 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.option import compile_regex, split_names
from pyhudi.errors import ConfigError, InvalidOptionError

_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
_BY_SIZE = "LogFileSizeBasedCompactionStrategy"
_DAY = re.compile(r"(\d+)[/-](\d+)[/-](\d+)")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of strategies. ``target_mb`` limits reading and writing of one compaction, thresholds are per file slice,
    ``days`` are counted back from ``today``. ``names_left_out``: plans list the partitions with remaining
    operations."""

    target_mb: int
    log_bytes: int
    log_files: int
    days: int
    regex: str | None
    names_left_out: bool
    today: date

    @classmethod
    def from_options(cls, opts: Options, today: date | None = None) -> Limits:
        """Create the limits from `hoodie.compaction.…`."""
        return cls(
            opts.get_typed(options.COMPACTION_TARGET_IO),
            opts.get_typed(options.COMPACTION_LOG_SIZE_THRESHOLD),
            opts.get_typed(options.COMPACTION_LOG_NUM_THRESHOLD),
            opts.get_typed(options.COMPACTION_DAY_PARTITIONS),
            opts.get_typed(options.COMPACTION_PARTITION_REGEX),
            opts.get_typed(options.INCREMENTAL_SERVICES),
            today or date.today(),
        )

    @property
    def earliest(self) -> date:
        """First of the days that are considered recent; with more days than dates have, the first date."""
        return self.today - timedelta(days=min(self.days, (self.today - date.min).days))


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """Operations in planned order, and the partitions with remaining operations."""

    operations: pa.Table
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy: selection of partitions, and selection and order of operations."""

    name: str
    partitions: Callable[[Sequence[str], Limits], Sequence[str]]
    choose: Callable[[pa.Table, Limits], StrategyResult]


def named_strategies(opts: Options) -> tuple[Strategy, ...]:
    """Return the strategies in `hoodie.compaction.strategy`, with or without package.

    Raises:
        InvalidOptionError: A strategy is unknown, or lacks an option.
    """
    option = options.COMPACTION_STRATEGY
    strategies = []
    for class_name in split_names(opts.get_typed(option)):
        name = class_name.removeprefix(_PACKAGE)
        if name not in STRATEGIES:
            raise InvalidOptionError(option.key, class_name, ", ".join(sorted(STRATEGIES)))
        if name.startswith("PartitionRegex"):
            _check_regex(opts.get_typed(options.COMPACTION_PARTITION_REGEX), name)
        strategies.append(STRATEGIES[name])
    return tuple(strategies)


def apply_strategies(strategies: Sequence[Strategy], operations: pa.Table, limits: Limits) -> StrategyResult:
    """Apply the strategies one after the other: first to the partitions, which determine the order of the operations,
    then to the operations.

    Raises:
        ConfigError: A day-based strategy is used, and a partition's path is not a day.
    """
    left_out: list[str] = []
    paths: Sequence[str] = sorted(pc.unique(operations["partition"]).to_pylist())
    for strategy in strategies:
        paths = strategy.partitions(paths, limits)
    place = pc.index_in(operations["partition"].combine_chunks(), value_set=pa.array(paths, pa.string()))
    operations = operations.filter(pc.is_valid(place))
    order = np.argsort(place.drop_null().to_numpy(), kind="stable")
    operations = operations.take(pa.array(order.astype(np.int64)))
    for strategy in strategies:
        chosen = strategy.choose(operations, limits)
        operations = chosen.operations
        left_out += chosen.left_out
    return StrategyResult(operations, tuple(dict.fromkeys(left_out)))


# --- partitions ------------------------------------------------------------------------------------------------------


def _all_partitions(paths: Sequence[str], _: Limits) -> Sequence[str]:
    return paths


def _latest_days(paths: Sequence[str], limits: Limits) -> Sequence[str]:
    return sorted(paths, key=_day, reverse=True)[: limits.days]


def _recent(paths: Sequence[str], limits: Limits) -> Sequence[str]:
    return [path for path in paths if _day(path) >= limits.earliest]


def _old(paths: Sequence[str], limits: Limits) -> Sequence[str]:
    return [path for path in sorted(paths, reverse=True) if _day(path) < limits.earliest]


def _matching(paths: Sequence[str], limits: Limits) -> Sequence[str]:
    pattern = _check_regex(limits.regex, "PartitionRegexBasedCompactionStrategy")
    return [path for path in paths if pattern.search(path)]


def _day(path: str) -> date:
    """Return the day in a partition's path, as ``2026/11/21`` or ``2026-11-21``, with or without column names."""
    match = _DAY.match(re.sub(r"(^|/)[^/]*?=", r"\1", path))
    try:
        if match is not None:
            return date(*(int(part) for part in match.groups()))
    except ValueError:
        pass
    raise ConfigError(
        f"the partition {path!r} is not a day: day-based compaction strategies require paths like 2026/11/21; "
        f"choose another strategy in {options.COMPACTION_STRATEGY.key}"
    )


def _check_regex(text: str | None, name: str) -> re.Pattern[str]:
    option = options.COMPACTION_PARTITION_REGEX
    if not text:
        raise ConfigError(f"{name} requires the option {option.key!r}: a regular expression for partition paths")
    return compile_regex(option, text)


# --- operations ------------------------------------------------------------------------------------------------------


def _unbounded(operations: pa.Table, _: Limits) -> StrategyResult:
    return StrategyResult(operations)


def _within_target(operations: pa.Table, limits: Limits) -> StrategyResult:
    """Return operations up to the target, including the one that exceeds it."""
    io = pc.add(operations["read_mb"], operations["write_mb"]).to_numpy()
    before = np.cumsum(io) - io
    fits = pa.array(before < limits.target_mb)
    left = operations.filter(pc.invert(fits))
    return StrategyResult(operations.filter(fits), tuple(left["partition"].to_pylist()))


def _most_log_bytes(operations: pa.Table, limits: Limits) -> StrategyResult:
    return _largest(operations, operations["log_bytes"], limits.log_bytes, limits)


def _most_log_files(operations: pa.Table, limits: Limits) -> StrategyResult:
    return _largest(operations, pc.list_value_length(operations["log_files"]), limits.log_files, limits)


def _largest(operations: pa.Table, measure: pa.ChunkedArray, threshold: int, limits: Limits) -> StrategyResult:
    """Return operations that reach the threshold, the largest first, up to the target."""
    numbers = measure.to_numpy()
    enough = numbers >= threshold
    below = operations.filter(pa.array(~enough))["partition"].to_pylist()
    order = np.argsort(-numbers[enough].astype(np.int64), kind="stable")
    chosen = _within_target(operations.filter(pa.array(enough)).take(pa.array(order)), limits)
    return StrategyResult(chosen.operations, (*below, *chosen.left_out))


def _newest_day_first(operations: pa.Table, _: Limits) -> StrategyResult:
    days = {path: _day(path).toordinal() for path in pc.unique(operations["partition"]).to_pylist()}
    order = np.argsort([-days[path] for path in operations["partition"].to_pylist()], kind="stable")
    return StrategyResult(operations.take(pa.array(order.astype(np.int64))))


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(_BY_SIZE, _all_partitions, _most_log_bytes),
        Strategy("LogFileNumBasedCompactionStrategy", _all_partitions, _most_log_files),
        Strategy("BoundedIOCompactionStrategy", _all_partitions, _within_target),
        Strategy("UnBoundedCompactionStrategy", _all_partitions, _unbounded),
        Strategy("DayBasedCompactionStrategy", _latest_days, _within_target),
        Strategy("BoundedPartitionAwareCompactionStrategy", _recent, _newest_day_first),
        Strategy("UnBoundedPartitionAwareCompactionStrategy", _old, _unbounded),
        Strategy("PartitionRegexBasedCompactionStrategy", _matching, _unbounded),
    )
}
"""All strategies of Apache Hudi 1.2, by class name without package."""
