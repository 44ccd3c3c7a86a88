"""Instants of the timeline, and the text form of instant times.

An instant time is the 17-digit text ``yyyyMMddHHmmssSSS`` in the time zone of ``hoodie.table.timeline.timezone``.
Releases before 0.10 wrote 14 digits (seconds). Some special instants have more digits (suffixes of the metadata table)
or are all zeros. Instants are compared as text, as in Apache Hudi.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo

INSTANT_DIGITS = 17
_BEFORE_ALL = "000000000000"
"""Prefix of 14-digit instants that precede all others, such as those of a bootstrap."""


class State(StrEnum):
    """State of an instant."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"

    @property
    def rank(self) -> int:
        """Order of states: 0, 1, 2."""
        return _RANKS[self]


_RANKS = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


class Action:
    """Action names as in file names."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"
    SCHEMA_COMMIT = "schemacommit"


ACTIONS = frozenset(value for name, value in vars(Action).items() if not name.startswith("_"))
WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Completed actions that change a snapshot."""

_FAMILY = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}


def completed_action(action: str) -> str:
    """Return the action as which a pending ``action`` completes: compaction → commit, clustering → replacecommit, …"""
    return _FAMILY.get(action, action)


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """Instant in its latest state.

    ``requested`` identifies it. ``completion`` is set only for completed instants of layout 2. ``file_name`` is the
    file of that state, without folder. Ordered by requested time, then action.
    """

    requested: str
    action: str
    state: State = field(compare=True)
    completion: str | None = field(compare=False)
    file_name: str = field(compare=False)

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def family(self) -> str:
        """Completed action, by which its files belong together (see :func:`completed_action`)."""
        return completed_action(self.action)

    @property
    def is_write(self) -> bool:
        """True if it is, or will complete as, a commit, deltacommit or replacecommit."""
        return self.family in WRITE_ACTIONS

    @property
    def order_time(self) -> str:
        """Completion time if the layout has one, otherwise the requested time."""
        return self.completion or self.requested

    def __str__(self) -> str:
        return f"{self.requested} {self.action} {self.state.lower()}"


_local_zone: list[Callable[[], tzinfo | None]] = []


def take_local_zone_from(engine: Callable[[], tzinfo | None]) -> None:
    """Have ``LOCAL`` mean the zone that a function returns, unless that is None.

    The virtual machine of the engine may have another zone than this process (``-Duser.timezone``), and Apache Hudi
    writes instants in that. If it wrote later instants that count as earlier, its updates would be lost.
    """
    _local_zone[:] = [engine]


def timeline_zone(name: str) -> tzinfo | None:
    """Return the tzinfo of a timeline time zone: ``UTC``, ``LOCAL`` (that of the engine; None: the zone of the process)
    or an IANA name."""
    if name.upper() == "LOCAL":
        return _local_zone[0]() if _local_zone else None
    return UTC if name.upper() == "UTC" else ZoneInfo(name)


def format_instant(moment: datetime) -> str:
    """Format a datetime as ``yyyyMMddHHmmssSSS`` without time zone conversion."""
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def instant_of_millis(epoch_ms: int, timezone: str) -> str:
    """Return the instant time of an epoch time in milliseconds."""
    seconds, millis = divmod(epoch_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, timeline_zone(timezone)):%Y%m%d%H%M%S}{millis:03d}"


def instant_hours_before(epoch_ms: int, hours: int, timezone: str) -> str:
    """Return the instant time of a number of hours before an epoch time in milliseconds; a change to or from daylight
    saving time in between makes them no longer or shorter."""
    return instant_of_millis(epoch_ms - hours * 3_600_000, timezone)


def current_instant(timezone: str) -> str:
    """Return the current time as an instant time."""
    return instant_of_millis(int(datetime.now().timestamp() * 1000), timezone)


def parse_instant(text: str) -> datetime:
    """Return the wall-clock datetime of an instant time; 14 digits mean the last millisecond of that second.

    Digits after the 17th (suffixes of the metadata table) are ignored. The instants of a bootstrap, which precede all
    others, are converted to the start of 1970, as in Apache Hudi. Raises ValueError for invalid texts.
    """
    if not text.isascii() or not text.isdigit() or len(text) < 14:
        raise ValueError(f"invalid instant time {text!r}; expected yyyyMMddHHmmssSSS")
    if len(text) == 14 and text.startswith(_BEFORE_ALL):
        return datetime(1970, 1, 1)
    millis = text[14:17] if len(text) >= INSTANT_DIGITS else "999"
    moment = datetime(
        int(text[:4]), int(text[4:6]), int(text[6:8]), int(text[8:10]), int(text[10:12]), int(text[12:14])
    )
    return moment.replace(microsecond=int(millis) * 1000)


def millis_of_instant(text: str, timezone: str = "LOCAL") -> int:
    """Return the epoch milliseconds of an instant time in the given time zone."""
    moment = parse_instant(text)
    zone = timeline_zone(timezone)
    aware = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    return int(aware.replace(microsecond=0).timestamp()) * 1000 + moment.microsecond // 1000


def just_before(time: str) -> str:
    """Return the greatest text of digits of the same length before an instant time; no instant is between the two."""
    return str(int(time) - 1).zfill(len(time))


def next_instant(text: str) -> str:
    """Return the instant time one millisecond after ``text``."""
    return format_instant(parse_instant(text) + timedelta(milliseconds=1))
