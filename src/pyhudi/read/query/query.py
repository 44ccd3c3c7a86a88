"""Specification of a query, from Apache Hudi's ``hoodie.datasource.*`` options or from arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyhudi.config import Options, options
from pyhudi.config.enums import HollowPolicy, IncrementalFormat, QueryType, ReadMergeType, TableType
from pyhudi.errors import ConfigError, InvalidOptionError, QueryError
from pyhudi.read.query.query_instants import QueryTime, query_instant, range_instant

if TYPE_CHECKING:
    from pyhudi.table.config.table_config import TableConfig

FIRST_BY_COMPLETION = 8  # Table version from which ranges refer to completion times.


@dataclass(frozen=True, slots=True)
class Query:
    """A query on one table. Times are instant times in the table's time zone.

    ``begin`` (exclusive; None: from the start) and ``end`` (inclusive; None: now) are the range of an incremental
    query: completion times if ``by_completion``, otherwise requested times. ``path_glob`` and ``sql_filters`` restrict
    it further; ``only`` to these active instants, by requested time. ``fallback`` allows reading the whole table if
    files of the range no longer exist. ``subpath`` is the requested part of the table, a folder relative to its root.
    ``changes`` requests the changes themselves instead of the latest state of changed records. ``partitions_from_path``
    takes the values of partition columns from paths even if files have them.
    """

    type: QueryType = QueryType.SNAPSHOT
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    by_completion: bool = True
    fallback: bool = True
    holes: HollowPolicy = HollowPolicy.FAIL
    only: frozenset[str] | None = None
    schema_as_of_end: bool = False
    changes: bool = False
    path_glob: str = ""
    sql_filters: tuple[str, ...] = ()
    partitions_from_path: bool = False
    subpath: str = ""

    @classmethod
    def of(
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
        shared = cls(by_completion=config.version >= FIRST_BY_COMPLETION)
        if begin is not None:
            given = opts or Options.parse({})
            fallback = given.get_typed(options.INCREMENTAL_FALLBACK_FULL_SCAN)
            shared = replace(shared, type=QueryType.INCREMENTAL, fallback=fallback, holes=_holes(given))
            return shared._between(begin, end, config)
        kind = QueryType.READ_OPTIMIZED if read_optimized else QueryType.SNAPSHOT
        return replace(shared, type=kind)._as_of(as_of, config)

    @classmethod
    def from_options(cls, given: Mapping[str, str], config: TableConfig) -> Query:
        """Create a query from the options of ``spark.read.format("hudi")``; other keys are ignored.

        Raises:
            InvalidOptionError: A value is not allowed.
            QueryError: The query is not supported. The message has the reason.
        """
        opts = Options.parse(given)
        _check_supported(opts, config)
        shared = cls(
            type=opts.get_typed(options.QUERY_TYPE),
            by_completion=config.version >= FIRST_BY_COMPLETION,
            partitions_from_path=opts.get_typed(options.EXTRACT_PARTITION_VALUES_FROM_PATH),
        )
        if shared.is_incremental:
            return _incremental(shared, opts, config)
        return shared._as_of(opts.get_typed(options.AS_OF_INSTANT), config)

    def _as_of(self, time: QueryTime | None, config: TableConfig) -> Query:
        return self if time is None else replace(self, as_of=query_instant(time, timezone=config.timezone))

    def _between(self, begin: QueryTime, end: QueryTime | None, config: TableConfig) -> Query:
        zone = config.timezone
        last = None if end is None else query_instant(end, options.END_INSTANTTIME.key, timezone=zone)
        return replace(self, begin=range_instant(begin, options.BEGIN_INSTANTTIME.key, timezone=zone), end=last)

    @property
    def is_incremental(self) -> bool:
        return self.type is QueryType.INCREMENTAL

    def in_range(self, time: str) -> bool:
        """Return True if an instant's time (see ``by_completion``) is in the incremental range."""
        return (self.begin is None or time > self.begin) and (self.end is None or time <= self.end)

    def __str__(self) -> str:
        if self.is_incremental:
            kind = "changes" if self.changes else "incremental"
            return f"{kind} from {self.begin or 'the start'} to {self.end or 'now'}"
        return f"{self.type} as of {self.as_of or 'now'}"


def _check_supported(opts: Options, config: TableConfig) -> None:
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


def _incremental(query: Query, opts: Options, config: TableConfig) -> Query:
    begin = opts.get_typed(options.BEGIN_INSTANTTIME)
    if begin is None:
        raise QueryError(
            f"an incremental query requires the option {options.BEGIN_INSTANTTIME.key!r} ('earliest' for the "
            "whole history)"
        )
    filters = (opts.get_typed(options.INCREMENTAL_FILTERS) or "").strip()
    return replace(
        query._between(begin, opts.get_typed(options.END_INSTANTTIME), config),
        by_completion=_by_completion(query, opts, config),
        changes=opts.get_typed(options.INCREMENTAL_FORMAT) is IncrementalFormat.CDC,
        fallback=opts.get_typed(options.INCREMENTAL_FALLBACK_FULL_SCAN),
        holes=_holes(opts),
        schema_as_of_end=opts.get_typed(options.INCREMENTAL_SCHEMA_AT_END),
        path_glob=opts.get_typed(options.INCREMENTAL_PATH_GLOB).strip(),
        sql_filters=tuple(f for f in re.split(r"\s*,\s*", filters) if f),
    )


def _by_completion(query: Query, opts: Options, config: TableConfig) -> bool:
    """Return True if the range of an incremental query refers to completion times, which depends on the table version
    unless the options set another one."""
    option = options.INCREMENTAL_TABLE_VERSION
    version = (opts.get_typed(option) or "").strip()
    if not version:
        return query.by_completion
    if version not in ("6", "8", "9"):
        raise InvalidOptionError(option.key, version, "6, 8, 9")
    if int(version) >= FIRST_BY_COMPLETION and not query.by_completion:
        raise ConfigError(
            f"option {option.key!r} is {version}, but this table has version {config.version}, which stores no "
            "completion times; leave the option out"
        )
    return int(version) >= FIRST_BY_COMPLETION


def _holes(opts: Options) -> HollowPolicy:
    option = options.HOLLOW_COMMIT_POLICY
    policy = opts.get_typed(option)
    if policy is HollowPolicy.USE_TRANSITION_TIME:
        allowed = "FAIL, BLOCK (USE_TRANSITION_TIME depends on modification times of files, which copies change)"
        raise InvalidOptionError(opts.spelling(option), policy, allowed)
    return policy


def glob_pattern(glob: str) -> str:
    """Return the RE2 regular expression for one of Hadoop's path globs; ``*`` also matches ``/``."""
    out, depth, i = "", 0, 0
    while i < len(glob):
        c = glob[i]
        if c == "\\" and i + 1 < len(glob):
            i += 1
            out += re.escape(glob[i])
        elif c == "*":
            out += ".*"
        elif c == "?":
            out += "."
        elif c == "{":
            out, depth = out + "(?:", depth + 1
        elif c == "}" and depth:
            out, depth = out + ")", depth - 1
        elif c == "," and depth:
            out += "|"
        elif c == "[" and "]" in glob[i + 1 :]:
            close = glob.index("]", i + 1)
            out += "[" + glob[i + 1 : close].replace("!", "^", 1) + "]"
            i = close
        else:
            out += re.escape(c)
        i += 1
    return f"^{out}$"
