"""Parser of date patterns of the timestamp key generator (Joda-Time's).

Letters: G C Y x w e E y D M d a K h H k m s S z Z. Quoted text and all other characters are literal, and two quotes,
also in quoted text, stand for one.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from itertools import zip_longest

from pyhudi.errors import ConfigError

_LETTERS = frozenset("GCYxweEyDMdaKhHkmsSzZ")


@dataclass(frozen=True, slots=True)
class PatternToken:
    """A run of one pattern letter (``letter`` set) or literal text (``letter`` empty)."""

    letter: str
    text: str

    @property
    def width(self) -> int:
        """Number of repetitions of the letter."""
        return len(self.text)


def tokens(pattern: str) -> tuple[PatternToken, ...]:
    """Split a pattern into tokens. Raises ConfigError for unknown letters and for an unclosed quote."""
    parsed: list[PatternToken] = []
    literal = ""
    quoted = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if pattern.startswith("''", position):
            literal += "'"
            position += 2
        elif char == "'":
            quoted = not quoted
            position += 1
        elif not quoted and char.isascii() and char.isalpha():
            if char not in _LETTERS:
                raise ConfigError(
                    f"the date pattern {pattern!r} has the unknown letter {char!r}; allowed: "
                    f"{''.join(sorted(_LETTERS))}, other letters in single quotes"
                )
            run = re.match(f"{char}+", pattern[position:])
            assert run is not None
            if literal:
                parsed.append(PatternToken("", literal))
                literal = ""
            parsed.append(PatternToken(char, run.group()))
            position += run.end()
        else:
            literal += char
            position += 1
    if quoted:
        raise ConfigError(f"the date pattern {pattern!r} has an unclosed quote")
    if literal:
        parsed.append(PatternToken("", literal))
    return tuple(parsed)


@dataclass(frozen=True, slots=True)
class InputPattern:
    """An input pattern as a regular expression that converts a text to ``yyyy-MM-dd HH:mm:ss.SSS``.

    ``regex`` matches whole texts; ``replacement`` refers to its groups. ``zone_group``: number of the group with the
    offset or zone of the text, 0 if the pattern has none. ``month_names``: month names must be replaced by numbers
    first. ``half_days``: hours are from 1 to 12, and 12 is 0, as nothing says that it is the second half of a day.
    """

    regex: str
    replacement: str
    zone_group: int
    month_names: bool
    half_days: bool


_FIELDS = {
    "y": "year",
    "Y": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "S": "fraction",
}
_WIDTHS = {"M": 2, "d": 2, "H": 2, "m": 2, "s": 2}


def input_pattern(pattern: tuple[PatternToken, ...]) -> InputPattern:
    """Return the regular expression (Java's syntax) for an input pattern. A text without a year is of the year 2000 if
    it has a month or a day, else of 1970, as in Joda.

    Raises ConfigError for letters that cannot be parsed from a text: two-digit years, AM and PM, weeks, eras.
    """
    regex = ""
    groups: dict[str, int] = {}
    count = 0
    for token, following in zip_longest(pattern, pattern[1:]):
        if not token.letter:
            regex += quote_regex(token.text)
        elif token.letter == "E":
            regex += r"[A-Za-z]+\.?"
        else:
            count += 1
            field = _input_field(token, groups, pattern)
            groups[field] = count
            regex += _group_regex(token, field, adjacent=following is not None and following.letter in _FIELDS)
    zone = groups.pop("zone", 0)

    def part(field: str, default: str) -> str:
        return f"${groups[field]}" if field in groups else default

    year = part("year", "2000" if groups.keys() & {"month", "day"} else "1970")
    date = f"{year}-{part('month', '01')}-{part('day', '01')}"
    time = f"{part('hour', '00')}:{part('minute', '00')}:{part('second', '00')}.{part('fraction', '0')}"
    month_names = any(token.letter == "M" and token.width > 2 for token in pattern)
    half_days = any(token.letter == "h" for token in pattern)
    return InputPattern(f"^{regex}$", f"{date} {time}", zone, month_names, half_days)


def _input_field(token: PatternToken, groups: Container[str], pattern: tuple[PatternToken, ...]) -> str:
    """Return the part of a moment that a letter stands for.

    Raises:
        ConfigError: The letter cannot be parsed, or an earlier one (``groups``) stands for the same part.
    """
    if token.letter in "Zz":
        return "zone"
    field = _FIELDS.get(token.letter)
    if field is None or field in groups or (field == "year" and token.width == 2):
        shown = "".join(part.text for part in pattern)
        raise ConfigError(
            f"the input date pattern {shown!r} uses {token.text!r}, which cannot be parsed; use yyyy, MM or "
            "MMM, dd, HH, mm, ss, SSS, Z, each once"
        )
    return field


def _group_regex(token: PatternToken, field: str, *, adjacent: bool) -> str:
    """Return the group that matches a part of a moment; if another number is ``adjacent``, it has a fixed width."""
    if field == "zone":
        return r"(Z|[+-]\d{2}:?\d{2})" if token.letter == "Z" and token.width < 3 else r"([A-Za-z][\w/+:-]*)"
    if field == "fraction":
        return rf"(\d{{1,{token.width}}})"
    if token.letter == "h":
        return f"(1[0-2]|0{'' if adjacent and token.width > 1 else '?'}[1-9])"
    if adjacent:
        return rf"(\d{{{token.width}}})"
    return rf"(\d{{1,{max(token.width, _WIDTHS.get(token.letter, 9))}}})"


def quote_regex(text: str) -> str:
    """Return a Java regular expression that matches a literal text."""
    return re.sub(r"([^A-Za-z0-9\s_])", r"\\\1", text)


_JAVA_SAME = frozenset({"yyyy", "MM", "dd", "MMM", "MMMM", "M", "d", "E", "EE", "EEE", "EEEE"})


def is_plain_date(token: PatternToken) -> bool:
    """Return True if Spark's date_format returns the same text for this token, except for a plus sign before years of
    more than four digits. Literal texts with a plus sign are excluded, so that the sign can be identified."""
    return token.text in _JAVA_SAME if token.letter else "+" not in token.text


def spark_pattern(run: tuple[PatternToken, ...]) -> str:
    """Return plain date tokens as one pattern of Spark's date_format."""
    return "".join(token.text if token.letter else "'" + token.text.replace("'", "''") + "'" for token in run)
