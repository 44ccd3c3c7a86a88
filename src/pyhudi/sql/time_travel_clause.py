"""``TIMESTAMP AS OF`` and ``VERSION AS OF`` after the name of a table, and ``@`` with a time or version."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.sql.token_cursor import Cursor

_TIMES, _VERSIONS = ("TIMESTAMP", "SYSTEM_TIME"), ("VERSION", "SYSTEM_VERSION")
_TYPED = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE"})
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "||", "&", "|", "^", "DIV"})
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """Time or version of a table in a query.

    Attributes:
        value: Its SQL.
        is_version: It follows ``VERSION AS OF``, otherwise ``TIMESTAMP AS OF``.
    """

    value: str
    is_version: bool


def parse_time_travel(cursor: Cursor) -> TimeTravel | None:
    """Consume the time or version of a table, if there is one."""
    if cursor.sees("@"):
        return _at_sign(cursor)
    start = cursor.at
    cursor.take("FOR")
    kind = cursor.word()
    if kind not in (*_TIMES, *_VERSIONS) or not (cursor.word(1) == "AS" and cursor.word(2) == "OF"):
        cursor.at = start
        return None
    cursor.at += 3
    return TimeTravel(_value(cursor), is_version=kind in _VERSIONS)


def _at_sign(cursor: Cursor) -> TimeTravel | None:
    """Consume ``@v`` and a version, or ``@`` and a time of digits (yyyyMMddHHmmssSSS); nothing if others come next."""
    word = cursor.word(1)
    digits = word.removeprefix("V")
    if not digits.isdigit():
        return None
    cursor.at += 2
    return TimeTravel(digits, is_version=digits != word)


def _value(cursor: Cursor) -> str:
    start = cursor.at
    _operand(cursor)
    while cursor.word() in _OPERATORS:
        cursor.at += 1
        _operand(cursor)
    return cursor.slice(start, cursor.at)


def _operand(cursor: Cursor) -> None:
    while cursor.word() in ("-", "+", "~"):
        cursor.at += 1
    if cursor.sees("("):
        cursor.parenthesized()
    elif cursor.take("INTERVAL"):
        _interval(cursor)
    elif cursor.take("CASE"):
        cursor.until("END")
        cursor.expect("END")
    elif cursor.kind() == "STRING":
        cursor.string()
    elif cursor.word() in _TYPED and cursor.kind(1) == "STRING":
        cursor.at += 1
        cursor.string()
    else:
        cursor.take(":")
        _name_or_call(cursor)
    while cursor.take("::"):
        _name_or_call(cursor)


def _name_or_call(cursor: Cursor) -> None:
    if cursor.done:
        cursor.fail("a time or version")
    cursor.at += 1
    while cursor.take("."):
        cursor.at += 1
    if cursor.sees("("):
        cursor.parenthesized()


def _interval(cursor: Cursor) -> None:
    """Consume values and units: ``1 DAY 2 HOURS``, ``'1' DAY``, ``'1 day'``, ``'1:30' HOUR TO MINUTE``."""
    while True:
        cursor.take("-")
        if cursor.sees("("):
            cursor.parenthesized()
        else:
            cursor.at += 1
        if _is_unit(cursor, 0):
            cursor.at += 1
        if cursor.take("TO"):
            cursor.at += 1
        if not (cursor.kind() in ("NUMBER", "STRING") and _is_unit(cursor, 1)):
            return


def _is_unit(cursor: Cursor, ahead: int) -> bool:
    return cursor.word(ahead).removesuffix("S") in _UNITS
