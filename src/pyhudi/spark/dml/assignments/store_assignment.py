"""Conversion of values to the types of the columns that they are stored in (Spark's store assignment)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from math import inf, nextafter

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from pyhudi.errors import ConfigError, InvalidOptionError, SchemaMismatchError
from pyhudi.spark.dml.assignments.assignable_types import (
    FLOATS,
    TIMES,
    can_up_cast,
    changes_inside,
    has_structs,
    has_untyped_null,
    is_assignable,
    is_nested,
    paired_fields,
)
from pyhudi.spark.session_settings import is_ansi
from pyhudi.spark.spark_errors import failure

STORE_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"
_ANSI_MODE = "spark.sql.ansi.enabled"
_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_READ_FROM_TEXTS = (NumericType, BooleanType, *TIMES)


class StoreAssignment(StrEnum):
    """Spark's policies of storing values of another type (``spark.sql.storeAssignmentPolicy``)."""

    ANSI = "ANSI"
    LEGACY = "LEGACY"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True)
class StoreRules:
    """Rules by which values are converted to the types of columns.

    Attributes:
        policy: What may be stored: as ANSI SQL says, anything that can be cast, or what surely fits.
        reads_texts: With ANSI, parse strings as numbers, booleans and times; evaluation fails at invalid ones.
        by_position: Match fields of structs by position instead of by name.
        ansi_mode: Casts of the session fail at values that do not fit, which LEGACY must not.
    """

    policy: StoreAssignment
    reads_texts: bool = False
    by_position: bool = False
    ansi_mode: bool = False

    @classmethod
    def for_insert(cls, spark: SparkSession, *, by_position: bool) -> StoreRules:
        """Return the rules of an insert.

        Args:
            spark: The session.
            by_position: Match fields of structs by position instead of by name.

        Raises:
            InvalidOptionError: There is no such policy.
        """
        policy = _policy(spark)
        return cls(policy, by_position=by_position, ansi_mode=_has_legacy_in_ansi_mode(spark, policy))

    @classmethod
    def for_changes(cls, spark: SparkSession) -> StoreRules:
        """Return the rules of an UPDATE or MERGE.

        Raises:
            InvalidOptionError: There is no such policy.
        """
        policy = _policy(spark)
        return cls(policy, reads_texts=True, ansi_mode=_has_legacy_in_ansi_mode(spark, policy))


def _policy(spark: SparkSession) -> StoreAssignment:
    named = str(spark.conf.get(STORE_ASSIGNMENT, None) or StoreAssignment.ANSI).upper()
    if named not in set(StoreAssignment):
        raise InvalidOptionError(STORE_ASSIGNMENT, named, ", ".join(StoreAssignment))
    return StoreAssignment(named)


def _has_legacy_in_ansi_mode(spark: SparkSession, policy: StoreAssignment) -> bool:
    """Return True if the policy is LEGACY, and the session has ANSI mode."""
    return policy is StoreAssignment.LEGACY and is_ansi(spark)


def stored_as(value: Column, source: DataType, target: DataType, name: str, rules: StoreRules) -> Column:
    """Convert a value to the type of a column.

    By ANSI store assignment, evaluation fails at a number that is out of range.

    Args:
        value: The value.
        source: Its type.
        target: Type of the column.
        name: Name of the column.
        rules: The rules of the conversion.

    Raises:
        SchemaMismatchError: Values of the type cannot be stored in the column.
        ConfigError: The policy is LEGACY, a value may not fit, and the session has ANSI mode.
    """
    if isinstance(target, ArrayType) and not target.containsNull:
        target = ArrayType(target.elementType)  # Spark casts no arrays that may have nulls; a write refuses these
    if source == target:
        return value
    if rules.policy is not StoreAssignment.ANSI:
        return _cast_by_policy(value, source, target, name, rules)
    by_position = rules.by_position
    if rules.reads_texts and isinstance(source, StringType) and isinstance(target, _READ_FROM_TEXTS):
        return _read(value, target, name)
    if not is_assignable(source, target, by_position=by_position):
        raise SchemaMismatchError(
            f"a value of type {source.simpleString()} cannot be stored in the column {name!r} of type "
            f"{target.simpleString()}; cast it"
        )
    if is_nested(target) and changes_inside(source, target, _is_checked, by_position=by_position):
        return _stored_inside(value, source, target, name, replace(rules, reads_texts=False))
    cast = value.cast(target)
    if isinstance(target, NumericType) and isinstance(source, NumericType):
        # A plain cast may overflow or return null, depending on the settings of the session.
        fits = _is_in_range(value, source, target) if isinstance(target, IntegralType) else cast.isNotNull()
        message = F.concat(F.lit("the value "), value.cast("string"), F.lit(f" does not fit the column {name!r}"))
        refused = failure(SchemaMismatchError, message).cast(target)
        return F.when(value.isNull() | F.coalesce(fits, F.lit(False)), cast).otherwise(refused)
    return _checked_text(value, source, cast, name)


def _is_in_range(value: Column, source: NumericType, target: IntegralType) -> Column:
    """Return True for a number whose integral part is a value of a type."""
    limit = 2 ** (_BITS[type(target)] - 1)
    if isinstance(source, DecimalType) and source.precision - source.scale < len(str(limit)):
        return F.lit(True)  # Spark may compare decimals of many digits without the first digits of the limit
    if isinstance(source, FLOATS):
        below = min(float(-limit - 1), nextafter(-limit, -inf))
        return (value > F.lit(below)) & (value < F.lit(float(limit)))
    return (value > F.lit(Decimal(-limit - 1))) & (value < F.lit(Decimal(limit)))


def _cast_by_policy(value: Column, source: DataType, target: DataType, name: str, rules: StoreRules) -> Column:
    """Convert a value by the policies STRICT and LEGACY."""
    is_lossless = can_up_cast(source, target, by_position=rules.by_position)
    if rules.policy is StoreAssignment.LEGACY and rules.ansi_mode and not is_lossless:
        raise ConfigError(
            f"{STORE_ASSIGNMENT}=LEGACY stores null, or another number, for a value of type {source.simpleString()} "
            f"that does not fit the column {name!r} of type {target.simpleString()}, and {_ANSI_MODE}=true lets "
            f"its cast fail: set {STORE_ASSIGNMENT}=ANSI, or {_ANSI_MODE}=false"
        )
    if rules.policy is StoreAssignment.STRICT and not is_lossless:
        raise SchemaMismatchError(
            f"a value of type {source.simpleString()} cannot be stored in the column {name!r} of type "
            f"{target.simpleString()} without a possible loss, and {STORE_ASSIGNMENT}=STRICT: cast it"
        )
    if rules.policy is StoreAssignment.STRICT and has_untyped_null(source):
        raise SchemaMismatchError(
            f"a NULL without a type cannot be stored in the column {name!r} of type {target.simpleString()}, because "
            f"{STORE_ASSIGNMENT}=STRICT: write CAST(NULL AS …), or leave the column out"
        )
    if not rules.by_position and has_structs(target) and type(source) is type(target):
        if isinstance(target, StructType) and not paired_fields(source, target, by_position=False):
            raise SchemaMismatchError(
                f"a value of type {source.simpleString()} has other fields than the column {name!r} of type "
                f"{target.simpleString()}"
            )
        return _stored_inside(value, source, target, name, rules)
    if is_nested(target) and changes_inside(source, target, _is_bytes_as_text, by_position=rules.by_position):
        return _stored_inside(value, source, target, name, rules)
    return _checked_text(value, source, value.cast(target), name)


def _checked_text(value: Column, source: DataType, cast: Column, name: str) -> Column:
    """Return a value as text; evaluation fails at bytes that are not UTF-8, which no file may have as text."""
    if not isinstance(source, BinaryType):
        return cast
    is_valid = getattr(F, "is_valid_utf8", None)  # from Spark 4.0 on, where decode fails by itself
    decoded = F.encode(F.decode(value, "UTF-8"), "UTF-8") == value
    is_text: Column = decoded if is_valid is None else is_valid(value.cast("string"))
    message = F.concat(F.lit("the bytes "), F.hex(value), F.lit(f" are not UTF-8, as text of the column {name!r} is"))
    return F.when(value.isNull() | is_text, cast).otherwise(failure(SchemaMismatchError, message).cast("string"))


def _stored_inside(value: Column, source: DataType, target: DataType, name: str, rules: StoreRules) -> Column:
    """Convert a nested value to the type of a column, each value in it separately."""

    def inner(item: Column, item_type: DataType, stored: DataType) -> Column:
        return stored_as(item, item_type, stored, name, rules)

    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        kinds = source.elementType, target.elementType
        return F.transform(value, lambda item: inner(item, *kinds))
    if isinstance(source, MapType) and isinstance(target, MapType):
        keys, values = (source.keyType, target.keyType), (source.valueType, target.valueType)
        stored = F.transform_values(value, lambda _, item: inner(item, *values))
        return F.transform_keys(stored, lambda key, _: inner(key, *keys))
    assert isinstance(source, StructType)
    assert isinstance(target, StructType)
    numbered = StructType([StructField(f"_{at}", field.dataType) for at, field in enumerate(source.fields)])
    plain = value.cast(numbered)  # Names of fields may be repeated.
    fields = [
        inner(plain.getField(f"_{at}"), source.fields[at].dataType, field.dataType).alias(field.name)
        for at, field in zip(paired_fields(source, target, by_position=rules.by_position), target.fields, strict=True)
    ]
    return F.when(value.isNotNull(), F.struct(*fields))


def _is_checked(source: DataType, target: DataType) -> bool:
    """Return True if each value has to be checked: numbers of another type, and bytes that become text."""
    is_number = isinstance(source, NumericType) and isinstance(target, NumericType)
    return (is_number and source != target) or _is_bytes_as_text(source, target)


def _is_bytes_as_text(source: DataType, target: DataType) -> bool:
    return isinstance(source, BinaryType) and isinstance(target, StringType)


def _read(text: Column, target: DataType, name: str) -> Column:
    """Parse a string; evaluation fails at invalid ones. A plain cast returns null, truncates or fails, depending on the
    settings of the session."""
    trimmed = F.trim(text)
    fits = trimmed.rlike(r"^[+-]?\d+$") if isinstance(target, IntegralType) else F.lit(True)
    cast = F.when(fits, trimmed).cast(target)
    message = F.concat(F.lit("the text '"), text, F.lit(f"' is no {target.simpleString()}, as the column {name!r} has"))
    return F.when(text.isNull() | cast.isNotNull(), cast).otherwise(failure(SchemaMismatchError, message).cast(target))
