"""Texts of column values in record keys and partition paths, as Spark column expressions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyhudi.errors import RecordKeyError
from pyhudi.keygen.key_spec import ENCODED_CHARS

# BigDecimal.toString uses exponents below this; a scale of up to 6 never gets there
_SMALLEST_PLAIN = "0.000001"


def value_text(column: Column, data_type: DataType, name: str, zone: str | None) -> Column:
    """Return the text of a value; null for null.

    Whole numbers, booleans, dates (``2024-01-02``) and floats (Java's form: ``1.0E10``) as Spark casts them, decimals
    as Java's BigDecimal prints them, binaries as lower-case hex, timestamps as epoch microseconds. With a *zone*,
    timestamps (with time zone) as ``2024-01-02 03:04:05.678`` in that zone, truncated to milliseconds.

    Raises:
        RecordKeyError: The type is not a scalar.
    """
    if isinstance(data_type, StringType):
        return column
    if isinstance(data_type, (IntegralType, BooleanType, DateType)):
        return column.cast("string")
    if isinstance(data_type, DecimalType):
        return _decimal_text(column, data_type)
    if isinstance(data_type, FractionalType):
        return column.cast("string")
    if isinstance(data_type, BinaryType):
        return F.lower(F.hex(column))
    if isinstance(data_type, TimestampType):
        if zone is None:
            return F.unix_micros(column).cast("string")
        return _consistent_text(F.unix_micros(column), zone)
    if isinstance(data_type, TimestampNTZType):
        return local_micros(column).cast("string")
    raise RecordKeyError(
        f"the field {name!r} has the type {data_type.simpleString()}, which is not supported in record keys and "
        "partition paths; use a field of a simple type, or a field nested in it with a dotted name"
    )


def has_empty_text(data_type: DataType) -> bool:
    """Return True if a value that is not null can have an empty text."""
    return isinstance(data_type, (StringType, BinaryType))


def _decimal_text(column: Column, data_type: DecimalType) -> Column:
    text = column.cast("string")
    if data_type.scale <= 6:
        return text
    # With ANSI casts Spark prints each decimal plainly, otherwise as BigDecimal.toString does, which is the form in
    # keys: add the exponents when they are missing.
    digits = F.regexp_replace(text, "^-?0\\.0*", "")
    length = F.length(digits)
    sign = F.when(column < 0, "-").otherwise("")
    exponent = (F.lit(data_type.scale) - F.greatest(length, F.lit(1)) + 1).cast("string")
    first = F.when(length == 0, "0").otherwise(F.substring(digits, 1, 1))
    rest = F.when(length > 1, F.concat(F.lit("."), F.substring(digits, 2, data_type.precision))).otherwise("")
    scientific = F.concat(sign, first, rest, F.lit("E-"), exponent)
    tiny = (F.abs(column) < F.lit(_SMALLEST_PLAIN).cast(DecimalType(38, 6))) & ~text.contains("E")
    return F.when(tiny, scientific).otherwise(text)


def local_micros(column: Column) -> Column:
    """Return the microseconds of a timestamp without time zone since 1970-01-01 00:00, independent of the session's
    time zone."""
    # *column* is used only once: these expressions nest, and each further use would double the size of the expression
    since = (column - F.expr("timestamp_ntz'1970-01-01 00:00:00'")).cast("interval second")
    return (since.cast("decimal(24,6)") * 1_000_000).cast("long")


def truncated_division(column: Column, by: int) -> Column:
    """Return the quotient rounded towards zero, as Java divides."""
    return F.call_function("div", column, F.lit(by))


def zoned(micros: Column, zone: str) -> Column:
    """Return epoch microseconds as a local timestamp (without time zone) in *zone*, independent of the session's time
    zone."""
    seconds = micros.cast("decimal(24,0)") * F.lit("0.000001").cast("decimal(6,6)")
    start = F.expr("timestamp_ntz'1970-01-01 00:00:00'")
    utc = start + F.make_dt_interval(secs=seconds.cast("decimal(18,6)"))
    return utc if zone in ("UTC", "GMT") else F.convert_timezone(F.lit("UTC"), F.lit(zone), utc)


def _consistent_text(micros: Column, zone: str) -> Column:
    # java.sql.Timestamp.toString: at least one digit of the fraction, no trailing zeros
    text = zoned(truncated_division(micros, 1000) * 1000, zone).cast("string")
    return F.when(text.contains("."), text).otherwise(F.concat(text, F.lit(".0")))


def sql_timestamp_text(column: Column, zone: str) -> Column:
    """Return timestamps in *zone* in the form that Apache Hudi's SQL gives them in partition paths: ``2024-01-02
    03%3A04%3A05``."""
    millis = truncated_division(F.unix_micros(column), 1000)
    text = F.substring_index(zoned(millis * 1000, zone).cast("string"), ".", 1)
    return F.replace(text, F.lit(":"), F.lit("%3A"))


def url_encoded(text: Column) -> Column:
    """Return the text with the characters of ENCODED_CHARS written as ``%XX``."""
    encoded = F.replace(text, F.lit("%"), F.lit("%25"))
    for char in ENCODED_CHARS.replace("%", ""):
        encoded = F.replace(encoded, F.lit(char), F.lit(f"%{ord(char):02X}"))
    # few values contain any of the characters: one check instead of 47 replacements
    escaped = "[\\x00-\\x1f\\x7f\"#%'*/:=?\\[\\\\\\]^{]"
    return F.when(text.rlike(escaped), encoded).otherwise(text)
