"""Selection of the file slices of a compaction: the strategies of Apache Hudi, over Arrow tables of operations.

A strategy first chooses partitions, then puts the operations found there in order and leaves some out. It also tells
the partitions where it left something, which go into the plan. The rules are those of Apache Hudi 1.2.0.
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
from pyhudi.config.option import split_names
from pyhudi.errors import ConfigError, InvalidOptionError

_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
_BY_SIZE = "LogFileSizeBasedCompactionStrategy"
_DAY = re.compile(r"(\d+)[/-](\d+)[/-](\d+)")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for strategies. ``target_mb`` bounds reading and writing of one compaction, thresholds are per file slice,
    ``days`` counts back from ``today``. ``names_left_out``: plans name the partitions in which something is left."""

    target_mb: int
    log_bytes: int
    log_files: int
    days: int
    regex: str | None
    names_left_out: bool
    today: date

    @classmethod
    def of(cls, opts: Options, today: date | None = None) -> Limits:
        """Return the limits from `hoodie.compaction.…`."""
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
        """The first of the days that count as recent."""
        return self.today - timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Operations in the order in which they are planned, and the partitions of those that were left out for now."""

    operations: pa.Table
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """Strategy: the partitions, then the operations, and their order."""

    name: str
    partitions: Callable[[Sequence[str], Limits], Sequence[str]]
    choose: Callable[[pa.Table, Limits], Chosen]


def named_strategies(opts: Options) -> tuple[Strategy, ...]:
    """The strategies that `hoodie.compaction.strategy` names, with or without package.

    Raises:
        InvalidOptionError: there is no such strategy, or it lacks an option.
    """
    option = options.COMPACTION_STRATEGY
    found = []
    for given in split_names(opts.get_typed(option)):
        name = given.removeprefix(_PACKAGE)
        if name not in STRATEGIES:
            raise InvalidOptionError(option.key, given, ", ".join(sorted(STRATEGIES)))
        if name.startswith("PartitionRegex"):
            _check_regex(opts.get_typed(options.COMPACTION_PARTITION_REGEX), name)
        found.append(STRATEGIES[name])
    return tuple(found)


def choose(strategies: Sequence[Strategy], operations: pa.Table, limits: Limits) -> Chosen:
    """Apply the strategies, one after the other, to the operations: first to their partitions, in whose order the
    operations then come.

    Raises:
        ConfigError: a strategy goes by days and a partition's path is no day.
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
    return Chosen(operations, tuple(dict.fromkeys(left_out)))


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
    """The day that a partition's path tells, as ``2026/11/21`` or ``2026-11-21``, column names in it or not."""
    found = _DAY.match(re.sub(r"(^|/)[^/]*?=", r"\1", path))
    try:
        if found is not None:
            return date(*(int(part) for part in found.groups()))
    except ValueError:
        pass
    raise ConfigError(
        f"the partition {path!r} is no day: compaction strategies by day need paths like 2026/11/21; choose another "
        f"one by {options.COMPACTION_STRATEGY.key}"
    )


def _check_regex(text: str | None, name: str) -> re.Pattern[str]:
    key = options.COMPACTION_PARTITION_REGEX.key
    if not text:
        raise ConfigError(f"{name} needs the option {key!r}: a regular expression for partition paths")
    try:
        return re.compile(text)
    except re.error as e:
        raise InvalidOptionError(key, text, f"a regular expression ({e})") from e


# --- operations ------------------------------------------------------------------------------------------------------


def _everything(operations: pa.Table, _: Limits) -> Chosen:
    return Chosen(operations)


def _within_target(operations: pa.Table, limits: Limits) -> Chosen:
    """Operations up to the target, the one that passes it included."""
    io = pc.add(operations["read_mb"], operations["write_mb"]).to_numpy()
    before = np.cumsum(io) - io
    fits = pa.array(before < limits.target_mb)
    left = operations.filter(pc.invert(fits))
    return Chosen(operations.filter(fits), tuple(left["partition"].to_pylist()))


def _most_log_bytes(operations: pa.Table, limits: Limits) -> Chosen:
    return _largest(operations, operations["log_bytes"], limits.log_bytes, limits)


def _most_log_files(operations: pa.Table, limits: Limits) -> Chosen:
    return _largest(operations, pc.list_value_length(operations["log_files"]), limits.log_files, limits)


def _largest(operations: pa.Table, measure: pa.ChunkedArray, threshold: int, limits: Limits) -> Chosen:
    """Operations that reach the threshold, the largest first, within the target."""
    numbers = measure.to_numpy()
    enough = numbers >= threshold
    below = operations.filter(pa.array(~enough))["partition"].to_pylist()
    order = np.argsort(-numbers[enough].astype(np.int64), kind="stable")
    chosen = _within_target(operations.filter(pa.array(enough)).take(pa.array(order)), limits)
    return Chosen(chosen.operations, (*below, *chosen.left_out))


def _newest_day_first(operations: pa.Table, _: Limits) -> Chosen:
    days = {path: _day(path).toordinal() for path in pc.unique(operations["partition"]).to_pylist()}
    order = np.argsort([-days[path] for path in operations["partition"].to_pylist()], kind="stable")
    return Chosen(operations.take(pa.array(order.astype(np.int64))))


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(_BY_SIZE, _all_partitions, _most_log_bytes),
        Strategy("LogFileNumBasedCompactionStrategy", _all_partitions, _most_log_files),
        Strategy("BoundedIOCompactionStrategy", _all_partitions, _within_target),
        Strategy("UnBoundedCompactionStrategy", _all_partitions, _everything),
        Strategy("DayBasedCompactionStrategy", _latest_days, _within_target),
        Strategy("BoundedPartitionAwareCompactionStrategy", _recent, _newest_day_first),
        Strategy("UnBoundedPartitionAwareCompactionStrategy", _old, _everything),
        Strategy("PartitionRegexBasedCompactionStrategy", _matching, _everything),
    )
}
"""Every strategy of Apache Hudi 1.2, by its class name without package."""
