"""What a query asks for, read from Apache Hudi's ``hoodie.datasource.*`` options or given by arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError, InvalidOptionError, QueryError
from pyhudi.read.instants import QueryTime, query_instant, range_instant

if TYPE_CHECKING:
    from pyhudi.table.config import TableConfig

QUERY_TYPE = "hoodie.datasource.query.type"
VIEW_TYPE = "hoodie.datasource.view.type"
AS_OF = "as.of.instant"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
INCREMENTAL_FORMAT = "hoodie.datasource.query.incremental.format"
INCREMENTAL_VERSION = "hoodie.datasource.read.incr.table.version"
PATH_GLOB = "hoodie.datasource.read.incr.path.glob"
INCREMENTAL_FILTERS = "hoodie.datasource.read.incr.filters"
END_SCHEMA = "hoodie.datasource.read.schema.use.end.instanttime"
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
HOLES = "hoodie.read.timeline.holes.resolution.policy"
MERGE_TYPE = "hoodie.datasource.merge.type"
PARTITION_FROM_PATH = "hoodie.datasource.read.extract.partition.values.from.path"
READ_PATHS = "hoodie.datasource.read.paths"

_SPELLINGS = {
    BEGIN: ("hoodie.datasource.read.begin.instant.time",),
    END: ("hoodie.datasource.read.end.instant.time",),
    QUERY_TYPE: (VIEW_TYPE,),
}
_FIRST_BY_COMPLETION = 8  # the table version from which on ranges are completion times


class QueryType(StrEnum):
    """The kinds of query; time travel is a snapshot or read-optimized query as of an instant."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class Holes(StrEnum):
    """What an incremental query of a table without completion times does about a write that is still pending while
    later ones have completed: refuse, or read only up to it."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"


@dataclass(frozen=True, slots=True)
class Query:
    """A query on one table. Times are instant text in the table's zone.

    ``begin`` (exclusive; None: from the start) and ``end`` (inclusive; None: now) bound an incremental query: they are
    completion times when ``by_completion``, else requested times. ``path_glob`` and ``sql_filters`` restrict it
    further; ``fallback`` allows it to read the whole table when files of the range are gone. ``subpath`` is the part
    of the table asked for, a folder relative to its root. ``partitions_from_path`` takes the values of partition
    columns from paths even where files have them.
    """

    type: QueryType = QueryType.SNAPSHOT
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    by_completion: bool = True
    fallback: bool = True
    holes: Holes = Holes.FAIL
    schema_as_of_end: bool = False
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
    ) -> Query:
        """A query from plain arguments; ``begin`` makes it incremental.

        Raises:
            QueryError: the arguments contradict each other.
            InvalidOptionError: a time in no accepted format.
        """
        if begin is None and end is not None:
            raise QueryError(f"end={end!r} needs begin: an incremental query has to say where it starts ('earliest')")
        if begin is not None and (as_of is not None or read_optimized):
            other = "as_of" if as_of is not None else "read_optimized"
            raise QueryError(f"begin={begin!r} asks for an incremental query, which takes no {other}")
        options: dict[str, object] = {}
        if begin is not None:
            options = {QUERY_TYPE: QueryType.INCREMENTAL, BEGIN: begin, END: end}
        elif read_optimized:
            options = {QUERY_TYPE: QueryType.READ_OPTIMIZED}
        return cls._build({**options, AS_OF: as_of}, config)

    @classmethod
    def from_options(cls, options: Mapping[str, str], config: TableConfig) -> Query:
        """A query from the options of ``spark.read.format("hudi")``; keys that concern no query are ignored.

        Raises:
            InvalidOptionError: a value that is not allowed.
            QueryError: a query that is not to be had, naming the reason.
        """
        return cls._build(options, config)

    @classmethod
    def _build(cls, options: Mapping[str, object], config: TableConfig) -> Query:
        kind = _query_type(options)
        if _text(options, READ_PATHS):
            raise QueryError(f"option {READ_PATHS!r} is not supported: load the table's base path and filter instead")
        if (
            _text(options, MERGE_TYPE, "payload_combine").lower() == "skip_merge"
            and config.table_type == "MERGE_ON_READ"
        ):
            raise QueryError(
                f"option {MERGE_TYPE!r} with the value 'skip_merge' is not supported on merge-on-read tables: it gives "
                "several versions of a record, and those that were deleted, and not every release the same ones. Leave "
                f"it out for merged rows, or set {QUERY_TYPE!r} to 'read_optimized' for base files alone"
            )
        shared = cls(
            type=kind,
            by_completion=config.version >= _FIRST_BY_COMPLETION,
            partitions_from_path=_flag(options, PARTITION_FROM_PATH, False),
        )
        if kind is not QueryType.INCREMENTAL:
            as_of = _raw(options, AS_OF)
            return shared if as_of is None else replace(shared, as_of=query_instant(as_of, timezone=config.timezone))
        return _incremental(shared, options, config)

    @property
    def is_incremental(self) -> bool:
        return self.type is QueryType.INCREMENTAL

    def in_range(self, time: str) -> bool:
        """Whether an instant's time (see ``by_completion``) lies in the incremental range."""
        return (self.begin is None or time > self.begin) and (self.end is None or time <= self.end)

    def __str__(self) -> str:
        if self.is_incremental:
            return f"incremental from {self.begin or 'the start'} to {self.end or 'now'}"
        return f"{self.type} as of {self.as_of or 'now'}"


def _incremental(query: Query, options: Mapping[str, object], config: TableConfig) -> Query:
    if _text(options, INCREMENTAL_FORMAT, "latest_state").lower() != "latest_state":
        if _text(options, INCREMENTAL_FORMAT).lower() == "cdc":
            raise QueryError(
                f"option {INCREMENTAL_FORMAT!r} with the value 'cdc': change data queries are not built yet"
            )
        raise InvalidOptionError(INCREMENTAL_FORMAT, _raw(options, INCREMENTAL_FORMAT), "latest_state")
    begin = _raw(options, BEGIN)
    if begin is None:
        raise QueryError(f"an incremental query needs the option {BEGIN!r} ('earliest' for the whole history)")
    end = _raw(options, END)
    by_completion = query.by_completion
    version = _text(options, INCREMENTAL_VERSION)
    if version:
        if version not in ("6", "8", "9"):
            raise InvalidOptionError(INCREMENTAL_VERSION, version, "6, 8, 9")
        by_completion = int(version) >= _FIRST_BY_COMPLETION
        if by_completion and not query.by_completion:
            raise ConfigError(
                f"option {INCREMENTAL_VERSION!r} is {version}, but this table has version {config.version}, which "
                "keeps no completion times; leave the option out"
            )
    filters = _text(options, INCREMENTAL_FILTERS)
    return replace(
        query,
        begin=range_instant(begin, BEGIN, timezone=config.timezone),
        end=None if end is None else query_instant(end, END, timezone=config.timezone),
        by_completion=by_completion,
        fallback=_flag(options, FALLBACK, True),
        holes=_holes(options),
        schema_as_of_end=_flag(options, END_SCHEMA, False),
        path_glob=_text(options, PATH_GLOB),
        sql_filters=tuple(f for f in re.split(r"\s*,\s*", filters) if f),
    )


def _query_type(options: Mapping[str, object]) -> QueryType:
    text = _text(options, QUERY_TYPE, QueryType.SNAPSHOT).lower()
    if text == "realtime":  # the name of a snapshot under the old key
        return QueryType.SNAPSHOT
    try:
        return QueryType(text)
    except ValueError:
        raise InvalidOptionError(QUERY_TYPE, text, ", ".join(QueryType)) from None


def _holes(options: Mapping[str, object]) -> Holes:
    text = _text(options, HOLES, Holes.FAIL).upper()
    try:
        return Holes(text)
    except ValueError:
        allowed = "FAIL, BLOCK (USE_TRANSITION_TIME would trust the modification times of files, which copies lose)"
        raise InvalidOptionError(HOLES, text, allowed) from None


def _raw(options: Mapping[str, object], key: str) -> QueryTime | None:
    for spelling in (key, *_SPELLINGS.get(key, ())):
        value = options.get(spelling)
        if value is not None:
            return value  # type: ignore[return-value]  # text, or what Query.of was given
    return None


def _text(options: Mapping[str, object], key: str, default: str = "") -> str:
    value = _raw(options, key)
    return default if value is None else str(value).strip()


def _flag(options: Mapping[str, object], key: str, default: bool) -> bool:
    text = _text(options, key, str(default)).lower()
    if text not in ("true", "false"):
        raise InvalidOptionError(key, _raw(options, key), "true, false")
    return text == "true"


def glob_pattern(glob: str) -> str:
    """The regular expression for one of Hadoop's path globs, as RE2 takes it; ``*`` also matches ``/``."""
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
