"""The timestamp key generator as Spark column expressions, from time values to partition paths.

Everything is computed from dates and milliseconds of the day, so that neither the session's time zone nor its daylight
saving gaps affect a path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, DateType, NumericType, StringType, TimestampNTZType, TimestampType

from pyhudi.errors import ConfigError
from pyhudi.keygen.date_patterns import InputPattern, PatternToken, input_pattern, is_plain_date, spark_pattern
from pyhudi.keygen.timestamp_settings import TimestampSpec
from pyhudi.spark.keys.value_formatter import local_micros, truncated_division, zoned

_DAY_MS = 86_400_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class _Local:
    """A local time: its date, the milliseconds of that day, and (where known) minutes east of UTC and zone id."""

    date: Column
    millis: Column
    offset: Column | None
    zone: str | None


def time_text(
    column: Column, data_type: DataType, spec: TimestampSpec, name: str, *, consistent: bool, jvm_zone: str
) -> Column:
    """Return the partition path of a time value; null for a text that matches no input pattern.

    Null values count as 1 unit after the epoch, as in Apache Hudi. *consistent*: timestamps are converted as timestamps
    instead of as a number of microseconds. *jvm_zone*: replaces a zone that is not configured.

    Raises:
        ConfigError: The timestamp type does not support the type of the column.
    """
    if spec.unit_ms is None:
        if not isinstance(data_type, StringType):
            raise ConfigError(
                f"the timestamp type {spec.type} requires texts, but the partition field {name!r} is "
                f"{data_type.simpleString()}; use UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR"
            )
        return _from_text(column, spec, jvm_zone)
    if isinstance(data_type, StringType):
        raise ConfigError(
            f"the timestamp type {spec.type} requires numbers, but the partition field {name!r} is a text; use "
            "DATE_STRING or MIXED with hoodie.keygen.timebased.input.dateformat"
        )
    zone = spec.output_zone or jvm_zone
    return _formatted(spec.output_format, _local(_millis(column, data_type, spec, name, consistent=consistent), zone))


def _millis(column: Column, data_type: DataType, spec: TimestampSpec, name: str, *, consistent: bool) -> Column:
    """Return the milliseconds since the epoch of a number, date or timestamp."""
    assert spec.unit_ms is not None
    if isinstance(data_type, TimestampType):
        number = F.unix_micros(column)
    elif isinstance(data_type, TimestampNTZType):
        number = local_micros(column)
    elif isinstance(data_type, DateType):
        number = F.unix_date(column).cast("long")
    elif isinstance(data_type, NumericType):
        number = column.cast("long")
    else:
        raise ConfigError(
            f"the partition field {name!r} is {data_type.simpleString()}, which cannot be converted to a time; use a "
            "number, a text, a date or a timestamp"
        )
    scaled = _scaled(F.coalesce(number, F.lit(1).cast("long")), spec)
    if isinstance(data_type, TimestampType) and consistent:
        return F.when(column.isNull(), scaled).otherwise(truncated_division(number, 1000))
    return scaled


def _scaled(number: Column, spec: TimestampSpec) -> Column:
    assert spec.unit_ms is not None
    if spec.unit_ms.denominator == 1:
        return number * spec.unit_ms.numerator
    return truncated_division(number, spec.unit_ms.denominator)


def _local(millis: Column, zone: str) -> _Local:
    offset = _fixed_offset(zone)
    if offset is not None:
        shifted = millis + offset * 60_000
        days = F.floor(shifted / _DAY_MS)
        date = F.date_from_unix_date(days.cast("int"))
        return _Local(date, F.pmod(shifted, F.lit(_DAY_MS).cast("long")), F.lit(offset), zone)
    micros = local_micros(zoned(millis * 1000, zone))
    local = truncated_division(micros, 1000)
    # a local time is a whole number of milliseconds here, so the division is exact
    days = F.floor(local / _DAY_MS)
    east = truncated_division(local - millis, 60_000)
    return _Local(F.date_from_unix_date(days.cast("int")), F.pmod(local, F.lit(_DAY_MS).cast("long")), east, zone)


def _fixed_offset(zone: str) -> int | None:
    """Return the minutes east of UTC of a zone without daylight saving; None for a named zone."""
    if zone in ("UTC", "GMT", "UT", "Z", "Etc/UTC"):
        return 0
    match = re.fullmatch(r"([+-])(\d\d):(\d\d)", zone)
    if match is None:
        return None
    minutes = int(match[2]) * 60 + int(match[3])
    return -minutes if match[1] == "-" else minutes


def _formatted(pattern: tuple[PatternToken, ...], local: _Local) -> Column:
    parts: list[Column] = []
    run: tuple[PatternToken, ...] = ()
    for token in (*pattern, None):
        if token is not None and is_plain_date(token):
            run += (token,)
            continue
        if any(part.letter for part in run):
            # Java's formatter puts a plus sign before years of more than four digits, Joda's does not
            parts.append(F.translate(F.date_format(local.date, spark_pattern(run)), "+", ""))
        elif run:
            parts.append(F.lit("".join(part.text for part in run)))
        run = ()
        if token is not None:
            parts.append(_token_text(token, local) if token.letter else F.lit(token.text))
    return F.concat(*parts)


def _token_text(token: PatternToken, local: _Local) -> Column:
    letter, width = token.letter, token.width
    date, millis = local.date, local.millis
    hour = truncated_division(millis, 3_600_000)
    if letter in "yY":
        year = F.year(date)
        return _number(F.pmod(year, F.lit(100)), 2) if width == 2 else _number(year, width, 6)
    if letter == "x":
        year = F.date_part(F.lit("YEAROFWEEK"), date)
        return _number(F.pmod(year, F.lit(100)), 2) if width == 2 else _number(year, width, 6)
    numbers = {
        "C": lambda: F.floor(F.year(date) / 100),
        "M": lambda: F.month(date),
        "d": lambda: F.dayofmonth(date),
        "w": lambda: F.weekofyear(date),
        "e": lambda: F.weekday(date) + 1,
        "D": lambda: F.dayofyear(date),
        "H": lambda: hour,
        "k": lambda: F.when(hour == 0, 24).otherwise(hour),
        "K": lambda: hour % 12,
        "h": lambda: F.when(hour % 12 == 0, 12).otherwise(hour % 12),
        "m": lambda: truncated_division(millis, 60_000) % 60,
        "s": lambda: truncated_division(millis, 1000) % 60,
    }
    if letter in numbers and not (letter == "M" and width > 2):
        return _number(numbers[letter](), width, 3 if letter == "D" else 2)
    if letter == "M":
        return F.date_format(date, "MMMM")
    if letter == "E":
        return F.date_format(date, "EEEE" if width > 3 else "EEE")
    if letter == "S":
        text = _number(millis % 1000, 3, 3)
        return F.substring(text, 1, width) if width <= 3 else F.rpad(text, width, "0")
    if letter == "a":
        return F.when(hour < 12, "AM").otherwise("PM")
    if letter == "G":
        return F.when(F.year(date) > 0, "AD").otherwise("BC")
    return _zone_text(token, local)


def _zone_text(token: PatternToken, local: _Local) -> Column:
    if token.letter == "Z" and token.width >= 3 and local.zone is not None:
        return F.lit(local.zone)
    if token.letter == "z" and local.zone in ("UTC", "GMT"):
        return F.lit(local.zone)
    if token.letter == "Z" and token.width < 3 and local.offset is not None:
        minutes = F.abs(local.offset)
        sign = F.when(local.offset < 0, "-").otherwise("+")
        colon = F.lit(":" if token.width == 2 else "")
        return F.concat(sign, _number(truncated_division(minutes, 60), 2), colon, _number(minutes % 60, 2))
    raise ConfigError(
        f"the date pattern uses {token.text!r}, a time zone name that is not supported; leave the zone out of the "
        "partition path, or set hoodie.keygen.timebased.output.timezone and use Z"
    )


def _number(value: Column, width: int, digits: int = 2) -> Column:
    """Return a number of up to *digits* digits with leading zeros. Uses *value* once."""
    text = value.cast("string")
    # lpad would truncate longer numbers
    return (
        text if width <= 1 else F.lpad(text, width, "0") if width >= digits else F.format_string(f"%0{width}d", value)
    )


def _from_text(column: Column, spec: TimestampSpec, jvm_zone: str) -> Column:
    # null counts as the first millisecond, as a text in the first pattern
    start_zone = spec.input_zone or spec.output_zone or "UTC"
    text = F.coalesce(column, _formatted(spec.input_formats[0], _local(F.lit(1).cast("long"), start_zone)))
    paths = [_path_of_text(text, input_pattern(pattern), spec, jvm_zone) for pattern in spec.input_formats]
    return F.coalesce(*paths)


def _path_of_text(text: Column, pattern: InputPattern, spec: TimestampSpec, jvm_zone: str) -> Column:
    numeric = text
    if pattern.month_names:
        for number, month in enumerate(_MONTHS, start=1):
            numeric = F.regexp_replace(numeric, f"(?i)(?<![a-z]){month}[a-z]*", f"{number:02d}")
    standard = F.regexp_replace(numeric, pattern.regex, pattern.replacement)
    if pattern.half_days:
        standard = F.regexp_replace(standard, " 12:", " 00:")
    written = standard.cast("timestamp_ntz")
    offset: Column | None = None
    if pattern.zone_group:
        zone_text = F.regexp_extract(numeric, pattern.regex, pattern.zone_group)
        # +0200 → +02:00, Z → UTC
        colon = F.regexp_replace(zone_text, "^([+-]\\d\\d):?(\\d\\d)$", "$1:$2")
        offset = F.when(zone_text == "Z", "UTC").otherwise(colon)
    target = spec.output_zone or spec.input_zone
    local = written
    if target is not None:
        source = offset if offset is not None else F.lit(spec.input_zone or jvm_zone)
        local = F.convert_timezone(source, F.lit(target), written)
    path = _formatted(spec.output_format, _parts_of(local, target, offset, jvm_zone))
    # a date that does not exist is null, and some parts of the path of a null are the text "null"; the cast of a text
    # that does not match must not be evaluated, because it may fail
    return F.when(numeric.rlike(pattern.regex), F.when(written.isNotNull(), path))


def _parts_of(local: Column, zone: str | None, offset: Column | None, jvm_zone: str) -> _Local:
    """Split a local timestamp into its parts; *zone* None: it is in the zone that the text was written in."""
    micros = local_micros(local)
    millis = F.pmod(truncated_division(micros, 1000), F.lit(_DAY_MS).cast("long"))
    date = local.cast("date")
    if zone is None:
        return _Local(date, millis, None, None if offset is not None else jvm_zone)
    fixed = _fixed_offset(zone)
    return _Local(date, millis, None if fixed is None else F.lit(fixed), zone)
