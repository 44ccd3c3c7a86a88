"""Texts of column values, as record keys and partition paths hold them, as Spark column expressions."""

from __future__ import annotations

from collections.abc import Sequence

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
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyhudi.errors import HudiError, RecordKeyError
from pyhudi.keygen.key_spec import ENCODED_CHARS

# BigDecimal.toString turns to exponents below this; a scale up to 6 never gets there
_SMALLEST_PLAIN = "0.000001"


def resolve(
    schema: StructType, name: str, role: str, error: type[HudiError] = RecordKeyError
) -> tuple[Column, DataType]:
    """The column that a field name stands for, and its type; dots lead into structs.

    Raises *error*, which says what the field was wanted for and which columns there are.
    """
    if name in schema.names:
        return F.col(quoted([name])), schema[name].dataType
    parts = name.split(".")
    here: DataType = schema
    for part in parts:
        if not isinstance(here, StructType) or part not in here.names:
            raise error(_missing(schema, name, role))
        here = here[part].dataType
    return F.col(quoted(parts)), here


def _missing(schema: StructType, name: str, role: str) -> str:
    near = [column for column in schema.names if column.lower() == name.lower()]
    hint = f"; did you mean {near[0]!r} (names are compared with their case)?" if near else ""
    return f"there is no column {name!r} for the {role}; the columns are: {', '.join(schema.names)}{hint}"


def quoted(parts: Sequence[str]) -> str:
    """A column name for Spark; every part is taken literally."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quoted_name(name: str) -> str:
    """A top-level column's name for Spark, whatever characters it has."""
    return quoted([name])


def value_text(column: Column, kind: DataType, name: str, zone: str | None) -> Column:
    """The text of a value; null for null.

    Whole numbers, booleans, dates (``2024-01-02``) and floats (Java's form: ``1.0E10``) as Spark casts them, decimals
    as Java's BigDecimal prints them, binaries as lower-case hex, timestamps as epoch microseconds. *zone* given:
    timestamps (with time zone) as ``2024-01-02 03:04:05.678`` in that zone, cut to milliseconds.
    Raises RecordKeyError for types that are no scalars.
    """
    if isinstance(kind, StringType):
        return column
    if isinstance(kind, (IntegralType, BooleanType, DateType)):
        return column.cast("string")
    if isinstance(kind, DecimalType):
        return _decimal_text(column, kind)
    if isinstance(kind, FractionalType):
        return column.cast("string")
    if isinstance(kind, BinaryType):
        return F.lower(F.hex(column))
    if isinstance(kind, TimestampType):
        if zone is None:
            return F.unix_micros(column).cast("string")
        return _consistent_text(F.unix_micros(column), zone)
    if isinstance(kind, TimestampNTZType):
        return local_micros(column).cast("string")
    raise RecordKeyError(
        f"the field {name!r} has the type {kind.simpleString()}, of which no key or partition path can be made; "
        "take a field of a simple type, or a field inside it with a dotted name"
    )


def has_empty_text(kind: DataType) -> bool:
    """Return True if a value that is not null can have an empty text."""
    return isinstance(kind, (StringType, BinaryType))


def _decimal_text(column: Column, kind: DecimalType) -> Column:
    text = column.cast("string")
    if kind.scale <= 6:
        return text
    # With ANSI casts Spark prints every decimal plainly, otherwise as BigDecimal.toString does, which is what keys
    # hold: rebuild its exponents when they are missing.
    digits = F.regexp_replace(text, "^-?0\\.0*", "")
    length = F.length(digits)
    sign = F.when(column < 0, "-").otherwise("")
    exponent = (F.lit(kind.scale) - F.greatest(length, F.lit(1)) + 1).cast("string")
    first = F.when(length == 0, "0").otherwise(F.substring(digits, 1, 1))
    rest = F.when(length > 1, F.concat(F.lit("."), F.substring(digits, 2, kind.precision))).otherwise("")
    scientific = F.concat(sign, first, rest, F.lit("E-"), exponent)
    tiny = (F.abs(column) < F.lit(_SMALLEST_PLAIN).cast(DecimalType(38, 6))) & ~text.contains("E")
    return F.when(tiny, scientific).otherwise(text)


def local_micros(column: Column) -> Column:
    """Microseconds of a timestamp without time zone since 1970-01-01 00:00, whatever the session's time zone."""
    # *column* is used once only: these expressions nest, and every further use would double the whole
    since = (column - F.expr("timestamp_ntz'1970-01-01 00:00:00'")).cast("interval second")
    return (since.cast("decimal(24,6)") * 1_000_000).cast("long")


def truncated_division(column: Column, by: int) -> Column:
    """Whole-number division towards zero, as Java divides."""
    return F.call_function("div", column, F.lit(by))


def zoned(micros: Column, zone: str) -> Column:
    """Epoch microseconds as the local timestamp (without time zone) of *zone*, whatever the session's time zone."""
    seconds = micros.cast("decimal(24,0)") * F.lit("0.000001").cast("decimal(6,6)")
    start = F.expr("timestamp_ntz'1970-01-01 00:00:00'")
    utc = start + F.make_dt_interval(secs=seconds.cast("decimal(18,6)"))
    return utc if zone in ("UTC", "GMT") else F.convert_timezone(F.lit("UTC"), F.lit(zone), utc)


def _consistent_text(micros: Column, zone: str) -> Column:
    # java.sql.Timestamp.toString: at least one digit of the fraction, trailing zeros left out
    text = zoned(truncated_division(micros, 1000) * 1000, zone).cast("string")
    return F.when(text.contains("."), text).otherwise(F.concat(text, F.lit(".0")))


def url_encoded(text: Column) -> Column:
    """The text with the characters of ENCODED_CHARS written as ``%XX``."""
    encoded = F.replace(text, F.lit("%"), F.lit("%25"))
    for char in ENCODED_CHARS.replace("%", ""):
        encoded = F.replace(encoded, F.lit(char), F.lit(f"%{ord(char):02X}"))
    # few values need any of it: one look instead of 47 replacements
    wanted = "[\\x00-\\x1f\\x7f\"#%'*/:=?\\[\\\\\\]^{]"
    return F.when(text.rlike(wanted), encoded).otherwise(text)
