"""Time formats of queries, converted to instant times.

Determined by testing Apache Hudi 1.2.0, which accepts ``yyyyMMddHHmmss[SSS]``, ``yyyy-MM-dd``, ``yyyy-MM-dd
HH:mm:ss[.SSS]`` (blank or ``T``), epoch seconds (10 digits) and epoch milliseconds (13 digits). Two of its rules are
unexpected:

* A time with a resolution of seconds means the last millisecond of that second (``09:54:47`` → ``…095447999``), a date
  means its first millisecond.
* Fourteen digits are kept, and since instants are compared as text they are *before* all instants of that second.

In addition pyhudi accepts zone offsets (``Z``, ``+02:00``), microseconds, and Python's ``date`` and ``datetime``. Dates
that do not exist are refused, whereas Apache Hudi interprets ``2026-11-31`` as a day in December.
"""

from __future__ import annotations

import re
from datetime import date, datetime, tzinfo

from pyhudi.errors import InvalidOptionError
from pyhudi.timeline.instant import format_instant, instant_of_millis, parse_instant, timeline_zone

QueryTime = str | int | date | datetime
"""Forms of a time in the public API; integers are epoch seconds (10 digits), milliseconds (13) or instants."""

ALLOWED = (
    "an instant (yyyyMMddHHmmss[SSS]), yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], yyyy-MM-ddTHH:mm:ss[.SSS], each with an "
    "optional zone offset after a time of day, epoch seconds (10 digits), epoch milliseconds (13 digits)"
)
EARLIEST = "earliest"

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{3}|\.\d{6})?(Z|[+-]\d{2}:?\d{2})?", re.ASCII | re.IGNORECASE
)
_ZEROS = re.compile(r"0+", re.ASCII)


def query_instant(value: QueryTime, key: str = "as.of.instant", *, timezone: str = "LOCAL") -> str:
    """Return the instant time for a point in time.

    ``key`` is the option in error messages; ``timezone`` is ``hoodie.table.timeline.timezone``, to which epoch times
    and times with an offset are converted. Text without an offset and naive datetimes are already in that zone.

    Raises:
        InvalidOptionError: The format is not accepted, or the date or time of day does not exist.
    """
    if isinstance(value, datetime):
        return _from_datetime(value, timezone)
    if isinstance(value, date):
        return format_instant(datetime(value.year, value.month, value.day))
    text = str(value).strip()
    try:
        instant = _parse(text, timezone)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidOptionError(key, value, f"{ALLOWED} ({error})") from error
    if instant is None:
        raise InvalidOptionError(key, value, ALLOWED)
    return instant


def range_instant(value: QueryTime, key: str, *, timezone: str = "LOCAL") -> str | None:
    """Return the instant time of a bound of an incremental query; None for the start (``earliest``, ``0``, ``000``).

    Raises:
        InvalidOptionError: As `query_instant`.
    """
    if isinstance(value, str | int):
        text = str(value).strip()
        if text.lower() == EARLIEST or _ZEROS.fullmatch(text):
            return None
    try:
        return query_instant(value, key, timezone=timezone)
    except InvalidOptionError as error:
        raise InvalidOptionError(key, value, f"{EARLIEST}, 000, {ALLOWED}") from error


def _parse(text: str, timezone: str) -> str | None:
    if text.isascii() and text.isdigit():
        return _from_digits(text, timezone)
    if _DATE.fullmatch(text):
        return format_instant(datetime.fromisoformat(text))
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}{fraction or '.999'}{(offset or '').upper()}")
    return _from_datetime(moment, timezone)


def _from_digits(text: str, timezone: str) -> str | None:
    if len(text) == 10:
        return instant_of_millis(int(text) * 1000, timezone)
    if len(text) == 13:
        return instant_of_millis(int(text), timezone)
    if len(text) == 17 or (len(text) == 14 and not text.startswith("000000000000")):
        parse_instant(text)
        return text
    return text if len(text) == 14 else None  # 00000000000000 … 02: before everything, such as bootstrap instants.


def _from_datetime(moment: datetime, timezone: str) -> str:
    if moment.tzinfo is None:
        return format_instant(moment)
    target: tzinfo | None = timeline_zone(timezone)
    return format_instant(moment.astimezone(target))
