"""Conversion of values to the types of the columns that they are stored in (Spark's store assignment)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyhudi.errors import ConfigError, InvalidOptionError, SchemaMismatchError
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.spark_errors import failure

STORE_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"
_ANSI_MODE = "spark.sql.ansi.enabled"
_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_DIGITS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_RANKS = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
_FLOATS = (FloatType, DoubleType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_STAMPS = (TimestampType, TimestampNTZType)
_READ_FROM_TEXTS = (NumericType, BooleanType, *_TIMES)


class StoreAssignment(StrEnum):
    """Spark's policies of storing values of another type (``spark.sql.storeAssignmentPolicy``)."""

    ANSI = "ANSI"
    LEGACY = "LEGACY"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True)
class StoreRules:
    """How values are converted to the types of columns.

    Args:
        policy: What may be stored: as ANSI SQL says, anything that can be cast, or what surely fits.
        reads_texts: With ANSI, parse strings as numbers, booleans and times; evaluation fails at invalid ones.
        by_position: Match fields of structs by position instead of by name.
        ansi_mode: Casts of the session fail at values that do not fit, which LEGACY must not.
    """

    policy: StoreAssignment = StoreAssignment.ANSI
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

        Args:
            spark: The session.

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
    return policy is StoreAssignment.LEGACY and str(spark.conf.get(_ANSI_MODE, "false")).lower() == "true"


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
    if not _assignable(source, target, by_position=by_position):
        raise SchemaMismatchError(
            f"a value of type {source.simpleString()} cannot be stored in the column {name!r} of type "
            f"{target.simpleString()}; cast it"
        )
    if _is_nested(target) and _changes_inside(source, target, _is_checked, by_position=by_position):
        return _stored_inside(value, source, target, name, replace(rules, reads_texts=False))
    cast = value.cast(target)
    if isinstance(target, NumericType) and isinstance(source, NumericType):
        # A plain cast may overflow or return null, depending on the settings of the session.
        fits = cast.isNotNull()
        if isinstance(target, IntegralType):
            limit = 2 ** (_BITS[type(target)] - 1)
            ends = (float(-limit), float(limit)) if isinstance(source, _FLOATS) else (Decimal(-limit), Decimal(limit))
            fits = (value >= F.lit(ends[0])) & (value < F.lit(ends[1]))
        message = F.concat(F.lit("the value "), value.cast("string"), F.lit(f" does not fit the column {name!r}"))
        refused = failure(SchemaMismatchError, message).cast(target)
        return F.when(value.isNull() | F.coalesce(fits, F.lit(False)), cast).otherwise(refused)
    return _checked_text(value, source, cast, name)


def _cast_by_policy(value: Column, source: DataType, target: DataType, name: str, rules: StoreRules) -> Column:
    """Convert a value by the policies STRICT and LEGACY."""
    is_lossless = _can_up_cast(source, target, by_position=rules.by_position)
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
    if rules.policy is StoreAssignment.STRICT and _has_untyped_null(source):
        raise SchemaMismatchError(
            f"a NULL without a type cannot be stored in the column {name!r} of type {target.simpleString()}, because "
            f"{STORE_ASSIGNMENT}=STRICT: write CAST(NULL AS …), or leave the column out"
        )
    if not rules.by_position and _has_structs(target) and type(source) is type(target):
        if isinstance(target, StructType) and not _paired(source, target, by_position=False):
            raise SchemaMismatchError(
                f"a value of type {source.simpleString()} has other fields than the column {name!r} of type "
                f"{target.simpleString()}"
            )
        return _stored_inside(value, source, target, name, rules)
    if _is_nested(target) and _changes_inside(source, target, _is_bytes_as_text, by_position=rules.by_position):
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


def _has_structs(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_structs(kind.elementType)
    if isinstance(kind, MapType):
        return _has_structs(kind.keyType) or _has_structs(kind.valueType)
    return isinstance(kind, StructType)


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
        for at, field in zip(_paired(source, target, by_position=rules.by_position), target.fields, strict=True)
    ]
    return F.when(value.isNotNull(), F.struct(*fields))


def _paired(source: StructType, target: StructType, *, by_position: bool) -> list[int]:
    """Return, for each field of a struct, the position of the field that provides its value; empty if the structs have
    different fields."""
    if len(source) != len(target):
        return []
    if by_position:
        return list(range(len(source)))
    names = [resolve_name(field.name, source.names) for field in target.fields]
    positions = [source.names.index(name) for name in names if name is not None]
    return positions if len(set(positions)) == len(target) else []


def renamed_fields(source: StructType, target: StructType) -> StructType:
    """Return a struct with the names of the fields of another one, by position; as it is if it has more or fewer.

    Structs in arrays and maps keep their names, as in Spark's INSERT with a list of columns.

    Args:
        source: The struct.
        target: The one with the names.
    """
    if len(source) != len(target):
        return source
    return StructType(
        [
            StructField(
                target_field.name,
                renamed_fields(source_field.dataType, target_field.dataType)
                if isinstance(source_field.dataType, StructType) and isinstance(target_field.dataType, StructType)
                else source_field.dataType,
                source_field.nullable,
            )
            for source_field, target_field in zip(source.fields, target.fields, strict=True)
        ]
    )


def has_same_names(source: DataType, target: DataType) -> bool:
    """Return True if all structs in two types have the same field names, in any order."""
    return _holds(
        source, target, lambda one, other: not (_is_nested(one) and type(one) is type(other)), by_position=False
    )


def _holds(
    source: DataType, target: DataType, accepts: Callable[[DataType, DataType], bool], *, by_position: bool
) -> bool:
    """Return True if a condition is true of two types, or of all pairs of types in them."""
    if accepts(source, target):
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _holds(source.elementType, target.elementType, accepts, by_position=by_position)
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = ((source.keyType, target.keyType), (source.valueType, target.valueType))
        return all(_holds(*pair, accepts, by_position=by_position) for pair in pairs)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = _paired(source, target, by_position=by_position)
        return bool(positions) and all(
            _holds(source.fields[at].dataType, field.dataType, accepts, by_position=by_position)
            for at, field in zip(positions, target.fields, strict=True)
        )
    return False


def _changes_inside(
    source: DataType, target: DataType, changes: Callable[[DataType, DataType], bool], *, by_position: bool
) -> bool:
    """Return True if a condition is true of a pair of types in two types, or nested fields have another order."""
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _changes_inside(source.elementType, target.elementType, changes, by_position=by_position)
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = ((source.keyType, target.keyType), (source.valueType, target.valueType))
        return any(_changes_inside(*pair, changes, by_position=by_position) for pair in pairs)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = _paired(source, target, by_position=by_position)  # none: Spark refuses the cast
        return positions not in ([], list(range(len(target)))) or any(
            _changes_inside(source.fields[at].dataType, field.dataType, changes, by_position=by_position)
            for at, field in zip(positions, target.fields, strict=False)
        )
    return changes(source, target)


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


def _assignable(source: DataType, target: DataType, *, by_position: bool) -> bool:
    return _holds(source, target, _is_assignable, by_position=by_position)


def _is_assignable(source: DataType, target: DataType) -> bool:
    """Return True if values of a type that is not nested can be stored by ANSI rules."""
    if isinstance(source, NullType) or (type(source) is type(target) and not _is_nested(target)):
        return True
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return True
    if isinstance(source, _TIMES) and isinstance(target, _TIMES):
        return True
    return isinstance(target, StringType) and not _is_nested(source)


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | MapType | StructType)


def _can_up_cast(source: DataType, target: DataType, *, by_position: bool) -> bool:
    """Return True if Spark casts all values of a type without a loss, as the policy STRICT requires."""
    return _holds(source, target, _is_lossless, by_position=by_position)


def _is_lossless(source: DataType, target: DataType) -> bool:
    """Return True if two types are the same, or values of one that is not nested are cast without a loss."""
    if isinstance(source, NullType) or source == target:
        return True
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return _is_wider(source, target)
    if isinstance(source, _TIMES) and isinstance(target, _STAMPS):
        return True
    if {type(source), type(target)} == {TimestampType, LongType}:
        return True
    return isinstance(source, AtomicType) and isinstance(target, StringType)


def _has_untyped_null(kind: DataType) -> bool:
    """Return True if a type is that of NULL, or has it inside."""
    if isinstance(kind, ArrayType):
        return _has_untyped_null(kind.elementType)
    if isinstance(kind, MapType):
        return _has_untyped_null(kind.keyType) or _has_untyped_null(kind.valueType)
    if isinstance(kind, StructType):
        return any(_has_untyped_null(field.dataType) for field in kind.fields)
    return isinstance(kind, NullType)


def _is_wider(source: NumericType, target: NumericType) -> bool:
    if type(source) in _RANKS and type(target) in _RANKS:
        return _RANKS.index(type(source)) <= _RANKS.index(type(target))
    if isinstance(target, DecimalType):
        digits = _DIGITS.get(type(source), 0)
        source_decimal = source if isinstance(source, DecimalType) else DecimalType(digits, 0)
        fits = (
            target.precision - target.scale >= source_decimal.precision - source_decimal.scale
            and target.scale >= source_decimal.scale
        )
        return fits and not isinstance(source, _FLOATS)
    return isinstance(source, DecimalType) and source.scale == 0 and source.precision < _DIGITS.get(type(target), 0)
