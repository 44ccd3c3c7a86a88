"""Specification of a query, from Apache Hudi's ``hoodie.datasource.*`` options or from arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.config import Options, options
from pyhudi.config.enums import HollowPolicy, IncrementalFormat, QueryType, ReadMergeType, TableType
from pyhudi.errors import ConfigError, EmptyRangeWarning, InvalidOptionError, QueryError, warn
from pyhudi.read.query.query_instants import QueryTime, query_instant, range_instant
from pyhudi.table.config.table_config import TableConfig

FIRST_BY_COMPLETION = 8  # Table version from which ranges refer to completion times.


@dataclass(frozen=True, slots=True)
class InstantRange:
    """Commits of an incremental query.

    Attributes:
        begin: Start, exclusive; None: from the first commit on.
        end: End, inclusive; None: up to now.
        by_completion: Start and end are completion times, otherwise requested times.
        only: Requested times of the active commits in the range that are meant; None: all.
    """

    begin: str | None = None
    end: str | None = None
    by_completion: bool = True
    only: frozenset[str] | None = None

    def includes(self, time: str) -> bool:
        """Return True if an instant's time (see `by_completion`) is between start and end."""
        return (self.begin is None or time > self.begin) and (self.end is None or time <= self.end)

    def is_crossed_by(self, requested: str, time: str) -> bool:
        """Return True if a write was requested before the end of a range of completion times, and completed after
        it."""
        return self.by_completion and self.end is not None and requested <= self.end < time

    def selects(self, requested: str) -> bool:
        """Return True unless ``only`` excludes an active commit of the range."""
        return self.only is None or requested in self.only

    def __str__(self) -> str:
        return f"from {self.begin or 'the start'} to {self.end or 'now'}"


@dataclass(frozen=True, slots=True)
class IncrementalSettings:
    """Settings for the result of an incremental query.

    Attributes:
        fallback: The whole table is read if files of the commits no longer exist.
        hollow_policy: Treatment of a write that is pending while later ones have completed.
        schema_as_of_end: Rows have the columns as of the last commit, otherwise the current ones.
        path_glob: Pattern of the paths of files that are read; empty: all.
        sql_filters: Conditions on the rows.
    """

    fallback: bool = True
    hollow_policy: HollowPolicy = HollowPolicy.FAIL
    schema_as_of_end: bool = False
    path_glob: str = ""
    sql_filters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A query on one table. Times are instant times in the table's time zone.

    Attributes:
        type: Type of the query.
        as_of: Time of a snapshot; None: now.
        instants: Commits of an incremental query.
        incremental: What such a query returns for them.
        changes: The changes themselves are read, instead of the latest state of changed records.
        partitions_from_path: Values of partition columns come from paths even if files have them.
        subpath: The part of the table that is read, a folder relative to its root; empty: the whole table.
        partitions: Paths of the partitions of a snapshot that are listed and read; None: all.
    """

    type: QueryType = QueryType.SNAPSHOT
    as_of: str | None = None
    instants: InstantRange = field(default_factory=InstantRange)
    incremental: IncrementalSettings = field(default_factory=IncrementalSettings)
    changes: bool = False
    partitions_from_path: bool = False
    subpath: str = ""
    partitions: tuple[str, ...] | None = None

    @classmethod
    def from_arguments(
        cls,
        config: TableConfig,
        *,
        as_of: QueryTime | None = None,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        read_optimized: bool = False,
        opts: Options | None = None,
    ) -> Query:
        """Create a query from arguments; ``begin`` makes it incremental.

        Args:
            config: Configuration of the table.
            as_of: Time of a snapshot.
            begin: Start of a range of changes.
            end: End of the range; None for the latest instant.
            read_optimized: Read base files alone.
            opts: Options; of these, what incremental queries do about cleaned files and pending writes applies.

        Raises:
            QueryError: The arguments contradict each other.
            InvalidOptionError: A time has no accepted format.
        """
        if begin is None and end is not None:
            raise QueryError(f"end={end!r} requires begin: an incremental query must have a start ('earliest')")
        if begin is not None and (as_of is not None or read_optimized):
            other = "as_of" if as_of is not None else "read_optimized"
            raise QueryError(f"begin={begin!r} requests an incremental query, which does not support {other}")
        if begin is not None:
            parsed = opts or Options.parse({})
            fallback = parsed.get_typed(options.INCREMENTAL_FALLBACK_FULL_SCAN)
            settings = IncrementalSettings(fallback, _hollow_policy(parsed))
            instants = _instant_range(begin, end, config)
            return cls(QueryType.INCREMENTAL, instants=instants, incremental=settings)
        kind = QueryType.READ_OPTIMIZED if read_optimized else QueryType.SNAPSHOT
        return cls(kind)._as_of(as_of, config)

    @classmethod
    def from_options(cls, query_options: Mapping[str, str], config: TableConfig) -> Query:
        """Create a query from the options of ``spark.read.format("hudi")``; other keys are ignored.

        Raises:
            InvalidOptionError: A value is not allowed.
            QueryError: The query is not supported. The message has the reason.
        """
        opts = Options.parse(query_options)
        _check_supported(config, opts)
        shared = cls(
            type=opts.get_typed(options.QUERY_TYPE),
            partitions_from_path=opts.get_typed(options.EXTRACT_PARTITION_VALUES_FROM_PATH),
        )
        if shared.is_incremental:
            return _incremental(shared, config, opts)
        return shared._as_of(opts.get_typed(options.AS_OF_INSTANT), config)

    def _as_of(self, time: QueryTime | None, config: TableConfig) -> Query:
        return self if time is None else replace(self, as_of=query_instant(time, timezone=config.timezone))

    @property
    def is_incremental(self) -> bool:
        return self.type is QueryType.INCREMENTAL

    def __str__(self) -> str:
        if self.is_incremental:
            return f"{'changes' if self.changes else 'incremental'} {self.instants}"
        return f"{self.type} as of {self.as_of or 'now'}"


def _check_supported(config: TableConfig, opts: Options) -> None:
    """Refuse options for unsupported queries."""
    if opts.get_typed(options.READ_PATHS):
        raise QueryError(
            f"option {options.READ_PATHS.key!r} is not supported: load the base path of the table and filter instead"
        )
    skips = opts.get_typed(options.READ_MERGE_TYPE) is ReadMergeType.SKIP_MERGE
    if skips and config.table_type == TableType.MERGE_ON_READ:
        raise QueryError(
            f"option {options.READ_MERGE_TYPE.key!r} with the value 'skip_merge' is not supported on "
            "merge-on-read tables: it returns several versions of a record, and deleted ones, which differ "
            f"between releases. Leave it out for merged rows, or set {options.QUERY_TYPE.key!r} to "
            "'read_optimized' for base files only"
        )


def _incremental(query: Query, config: TableConfig, opts: Options) -> Query:
    begin = opts.get_typed(options.BEGIN_INSTANTTIME)
    if begin is None:
        raise QueryError(
            f"an incremental query requires the option {options.BEGIN_INSTANTTIME.key!r} ('earliest' for the "
            "whole history)"
        )
    filters = (opts.get_typed(options.INCREMENTAL_FILTERS) or "").strip()
    instants = _instant_range(begin, opts.get_typed(options.END_INSTANTTIME), config)
    settings = IncrementalSettings(
        fallback=opts.get_typed(options.INCREMENTAL_FALLBACK_FULL_SCAN),
        hollow_policy=_hollow_policy(opts),
        schema_as_of_end=opts.get_typed(options.INCREMENTAL_SCHEMA_AT_END),
        path_glob=opts.get_typed(options.INCREMENTAL_PATH_GLOB).strip(),
        sql_filters=tuple(f for f in re.split(r"\s*,\s*", filters) if f),
    )
    return replace(
        query,
        instants=replace(instants, by_completion=_by_completion(config, opts)),
        incremental=settings,
        changes=opts.get_typed(options.INCREMENTAL_FORMAT) is IncrementalFormat.CDC,
    )


def _instant_range(begin: QueryTime, end: QueryTime | None, config: TableConfig) -> InstantRange:
    """Return a range of the times that the version of the table has. One that ends before it begins is warned of; jobs
    that run on a schedule may mean it."""
    zone = config.timezone
    first = range_instant(begin, options.BEGIN_INSTANTTIME.key, timezone=zone)
    last = None if end is None else query_instant(end, options.END_INSTANTTIME.key, timezone=zone)
    if first is not None and last is not None and last < first:
        warn(
            f"the incremental query begins after {begin} and ends at {end}, which is earlier, so it has no rows",
            EmptyRangeWarning,
        )
    return InstantRange(first, last, by_completion=config.version >= FIRST_BY_COMPLETION)


def _by_completion(config: TableConfig, opts: Options) -> bool:
    """Return True if the range of an incremental query refers to completion times, which depends on the table version
    unless the options set another one."""
    option = options.INCREMENTAL_TABLE_VERSION
    has_completion_times = config.version >= FIRST_BY_COMPLETION
    version = (opts.get_typed(option) or "").strip()
    if not version:
        return has_completion_times
    if version not in ("6", "8", "9"):
        raise InvalidOptionError(option.key, version, "6, 8, 9")
    if int(version) >= FIRST_BY_COMPLETION and not has_completion_times:
        raise ConfigError(
            f"option {option.key!r} is {version}, but this table has version {config.version}, which stores no "
            "completion times; leave the option out"
        )
    return int(version) >= FIRST_BY_COMPLETION


def _hollow_policy(opts: Options) -> HollowPolicy:
    option = options.HOLLOW_COMMIT_POLICY
    policy = opts.get_typed(option)
    if policy is HollowPolicy.USE_TRANSITION_TIME:
        allowed = "FAIL, BLOCK (USE_TRANSITION_TIME depends on modification times of files, which copies change)"
        raise InvalidOptionError(opts.spelling(option), policy, allowed)
    return policy
