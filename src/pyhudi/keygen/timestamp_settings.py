"""Settings of the timestamp key generator: input type and conversion of time values to partition paths.

Time zones: Apache Hudi documents UTC as the default, but without an option it uses the JVM's zone, represented by
``None``. Date patterns are Joda's, see date_patterns.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pyhudi.config import options
from pyhudi.config.enums import TimestampType
from pyhudi.config.option import Option
from pyhudi.errors import ConfigError, InvalidOptionError
from pyhudi.keygen.date_patterns import PatternToken, tokens

_UNITS = {
    "NANOSECONDS": Fraction(1, 1_000_000),
    "MICROSECONDS": Fraction(1, 1_000),
    "MILLISECONDS": Fraction(1),
    "SECONDS": Fraction(1_000),
    "MINUTES": Fraction(60_000),
    "HOURS": Fraction(3_600_000),
    "DAYS": Fraction(86_400_000),
}
"""Milliseconds per unit."""
_TYPE_UNITS = {
    TimestampType.UNIX_TIMESTAMP: "SECONDS",
    TimestampType.EPOCHMILLISECONDS: "MILLISECONDS",
    TimestampType.EPOCHMICROSECONDS: "MICROSECONDS",
}
_JAVA_OFFSET = re.compile(r"GMT([+-])(\d|[01]\d|2[0-3]):?([0-5]\d)?")
_JODA_ZONES = {
    "EST": "America/New_York",
    "MST": "America/Denver",
    "HST": "Pacific/Honolulu",
    "ECT": "CET",
    "GMT": "UTC",
}
"""Ids for which Joda, when it converts a ``TimeZone``, has other rules than Spark: ``EST`` has daylight saving."""
_TEXTS = (TimestampType.DATE_STRING, TimestampType.MIXED)
"""Types of input that are texts."""


@dataclass(frozen=True, slots=True)
class TimestampSpec:
    """Settings with which the timestamp key generator converts a value to a partition path.

    ``unit_ms``: milliseconds per unit of a number; None if numbers are not supported (DATE_STRING, MIXED).
    ``input_formats``: patterns tried in order on texts; empty if texts are not supported. ``input_zone``,
    ``output_zone``: zone ids, or None for the JVM's (for the output of a text: its own zone).
    """

    type: TimestampType
    unit_ms: Fraction | None
    input_formats: tuple[tuple[PatternToken, ...], ...]
    output_format: tuple[PatternToken, ...]
    input_zone: str | None
    output_zone: str | None

    @classmethod
    def from_options(cls, lookup: Callable[[str], str | None]) -> TimestampSpec:
        """Read the options ``TIMESTAMP_*`` (``hoodie.keygen.timebased.*``) through *lookup* (key → value or None).

        Raises ConfigError for a missing key and InvalidOptionError for an invalid value, like Apache Hudi.
        """
        settings = _TimestampOptions(lookup)
        kind, output_format = settings.type(), settings.output_format()
        timezone = settings.get(options.TIMESTAMP_TIMEZONE)
        return cls(
            type=kind,
            unit_ms=None if kind in _TEXTS else settings.unit(kind),
            input_formats=settings.input_formats(kind) if kind in _TEXTS else (),
            output_format=output_format,
            input_zone=java_zone(timezone or settings.get(options.TIMESTAMP_INPUT_TIMEZONE)),
            output_zone=java_zone(timezone or settings.get(options.TIMESTAMP_OUTPUT_TIMEZONE)),
        )


@dataclass(frozen=True, slots=True)
class _TimestampOptions:
    """Options ``TIMESTAMP_*``, of which a blank one counts as absent."""

    lookup: Callable[[str], str | None]

    def get(self, option: Option[Any]) -> str | None:
        """Return the text of an option; None if it is absent."""
        value = self.lookup(option.key)
        return None if value is None or not value.strip() else value

    def type(self) -> TimestampType:
        name = self.get(options.TIMESTAMP_TYPE)
        if name is None:
            raise ConfigError(
                f"the timestamp key generator requires {options.TIMESTAMP_TYPE.key}; allowed: "
                f"{', '.join(TimestampType)}"
            )
        if name not in TimestampType.__members__:
            raise InvalidOptionError(options.TIMESTAMP_TYPE.key, name, ", ".join(TimestampType))
        return TimestampType(name)

    def output_format(self) -> tuple[PatternToken, ...]:
        pattern = self.get(options.TIMESTAMP_OUTPUT_FORMAT)
        if pattern is None:
            raise ConfigError(
                f"the timestamp key generator requires {options.TIMESTAMP_OUTPUT_FORMAT.key}, a date pattern such "
                "as yyyy/MM/dd"
            )
        return tokens(pattern)

    def input_formats(self, kind: TimestampType) -> tuple[tuple[PatternToken, ...], ...]:
        patterns = self.get(options.TIMESTAMP_INPUT_FORMAT)
        if patterns is None:
            raise ConfigError(
                f"{options.TIMESTAMP_TYPE.key}={kind} requires {options.TIMESTAMP_INPUT_FORMAT.key}, a date pattern "
                "such as yyyy-MM-dd"
            )
        option = options.TIMESTAMP_INPUT_FORMAT_DELIMITER
        parts = re.split(self.get(option) or option.default, patterns)
        return tuple(tokens(part.strip()) for part in parts if part.strip())

    def unit(self, kind: TimestampType) -> Fraction:
        option = options.TIMESTAMP_SCALAR_UNIT
        name = _TYPE_UNITS.get(kind) or (self.get(option) or option.default).upper()
        if name not in _UNITS:
            raise InvalidOptionError(option.key, name, ", ".join(_UNITS))
        return _UNITS[name]


def java_zone(text: str | None) -> str | None:
    """Convert a zone id as Apache Hudi does, from an id of Java's ``TimeZone`` to a zone of Joda, in the form of Spark
    (``GMT+8:00`` → ``+08:00``). An offset that `is_unknown_offset` is UTC."""
    if text is None:
        return None
    zone = text.strip()
    if is_unknown_offset(zone):
        return "UTC"
    match = _JAVA_OFFSET.fullmatch(zone)
    if match is None:
        return _JODA_ZONES.get(zone, zone)
    sign, hours, minutes = match.groups()
    return f"{sign}{int(hours):02d}:{minutes or '00'}"


def is_unknown_offset(text: str) -> bool:
    """Return whether a zone id is an offset in a form that Java's ``TimeZone`` takes for GMT, as ``+08:00`` and
    ``UTC+8``."""
    return re.match(r"(GMT|UTC|UT)?[+-]", text.strip()) is not None and _JAVA_OFFSET.fullmatch(text.strip()) is None
