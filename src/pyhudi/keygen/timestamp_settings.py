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

# Milliseconds per unit.
_UNITS = {
    "NANOSECONDS": Fraction(1, 1_000_000),
    "MICROSECONDS": Fraction(1, 1_000),
    "MILLISECONDS": Fraction(1),
    "SECONDS": Fraction(1_000),
    "MINUTES": Fraction(60_000),
    "HOURS": Fraction(3_600_000),
    "DAYS": Fraction(86_400_000),
}
_TYPE_UNITS = {
    TimestampType.UNIX_TIMESTAMP: "SECONDS",
    TimestampType.EPOCHMILLISECONDS: "MILLISECONDS",
    TimestampType.EPOCHMICROSECONDS: "MICROSECONDS",
}


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

        def get(option: Option[Any]) -> str | None:
            value = lookup(option.key)
            return None if value is None or not value.strip() else value

        raw_type = get(options.TIMESTAMP_TYPE)
        if raw_type is None:
            raise ConfigError(
                f"the timestamp key generator requires {options.TIMESTAMP_TYPE.key}; allowed: "
                f"{', '.join(TimestampType)}"
            )
        if raw_type not in TimestampType.__members__:
            raise InvalidOptionError(options.TIMESTAMP_TYPE.key, raw_type, ", ".join(TimestampType))
        kind = TimestampType(raw_type)
        output = get(options.TIMESTAMP_OUTPUT_FORMAT)
        if output is None:
            raise ConfigError(
                f"the timestamp key generator requires {options.TIMESTAMP_OUTPUT_FORMAT.key}, a date pattern such "
                "as yyyy/MM/dd"
            )
        texts = kind in (TimestampType.DATE_STRING, TimestampType.MIXED)
        raw_input = get(options.TIMESTAMP_INPUT_FORMAT)
        if texts and raw_input is None:
            raise ConfigError(
                f"{options.TIMESTAMP_TYPE.key}={kind} requires {options.TIMESTAMP_INPUT_FORMAT.key}, a date pattern "
                "such as yyyy-MM-dd"
            )
        formats: tuple[tuple[PatternToken, ...], ...] = ()
        if texts and raw_input is not None:
            delimiter = (
                get(options.TIMESTAMP_INPUT_FORMAT_DELIMITER) or options.TIMESTAMP_INPUT_FORMAT_DELIMITER.default
            )
            formats = tuple(tokens(part.strip()) for part in re.split(delimiter, raw_input) if part.strip())
        unit: Fraction | None = None
        if not texts:
            name = (
                _TYPE_UNITS.get(kind)
                or (get(options.TIMESTAMP_SCALAR_UNIT) or options.TIMESTAMP_SCALAR_UNIT.default).upper()
            )
            if name not in _UNITS:
                raise InvalidOptionError(options.TIMESTAMP_SCALAR_UNIT.key, name, ", ".join(_UNITS))
            unit = _UNITS[name]
        timezone = get(options.TIMESTAMP_TIMEZONE)
        return cls(
            type=kind,
            unit_ms=unit,
            input_formats=formats,
            output_format=tokens(output),
            input_zone=java_zone(timezone or get(options.TIMESTAMP_INPUT_TIMEZONE)),
            output_zone=java_zone(timezone or get(options.TIMESTAMP_OUTPUT_TIMEZONE)),
        )


def java_zone(text: str | None) -> str | None:
    """Convert a zone id of Java's ``TimeZone`` to the form of Spark (``GMT+8:00`` → ``+08:00``)."""
    if text is None:
        return None
    match = re.fullmatch(r"(?:GMT|UTC|UT)?([+-])(\d{1,2}):?(\d{2})?", text.strip())
    if match is None:
        return text.strip()
    sign, hours, minutes = match.groups()
    return f"{sign}{int(hours):02d}:{minutes or '00'}"
