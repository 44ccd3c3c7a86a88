"""Types of values that may be stored in columns of another type, with nested types compared pair by pair."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
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

from pyhudi.schema.name_resolution import resolve_name

_DIGITS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_RANKS = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
FLOATS = (FloatType, DoubleType)
TIMES = (DateType, TimestampType, TimestampNTZType)
_STAMPS = (TimestampType, TimestampNTZType)


def is_nested(data_type: DataType) -> bool:
    """Return True for arrays, maps and structs."""
    return isinstance(data_type, ArrayType | MapType | StructType)


def has_structs(data_type: DataType) -> bool:
    """Return True if a type is a struct, or has one inside."""
    return _contains(data_type, StructType)


def has_untyped_null(data_type: DataType) -> bool:
    """Return True if a type is that of NULL, or has it inside."""
    return _contains(data_type, NullType)


def _contains(data_type: DataType, searched: type[DataType]) -> bool:
    """Return True if a type or a type inside of it is of a class."""
    if isinstance(data_type, searched):
        return True
    if isinstance(data_type, ArrayType):
        return _contains(data_type.elementType, searched)
    if isinstance(data_type, MapType):
        return _contains(data_type.keyType, searched) or _contains(data_type.valueType, searched)
    return isinstance(data_type, StructType) and any(_contains(field.dataType, searched) for field in data_type.fields)


def paired_fields(source: StructType, target: StructType, *, by_position: bool) -> list[int]:
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
    return _all_pairs(
        source, target, lambda one, other: not (is_nested(one) and type(one) is type(other)), by_position=False
    )


def _all_pairs(
    source: DataType, target: DataType, accepts: Callable[[DataType, DataType], bool], *, by_position: bool
) -> bool:
    """Return True if a condition is true of two types, or of all pairs of types in them."""
    if accepts(source, target):
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _all_pairs(source.elementType, target.elementType, accepts, by_position=by_position)
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = ((source.keyType, target.keyType), (source.valueType, target.valueType))
        return all(_all_pairs(*pair, accepts, by_position=by_position) for pair in pairs)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = paired_fields(source, target, by_position=by_position)
        return bool(positions) and all(
            _all_pairs(source.fields[at].dataType, field.dataType, accepts, by_position=by_position)
            for at, field in zip(positions, target.fields, strict=True)
        )
    return False


def changes_inside(
    source: DataType, target: DataType, changes: Callable[[DataType, DataType], bool], *, by_position: bool
) -> bool:
    """Return True if a condition is true of a pair of types in two types, or nested fields have another order."""
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return changes_inside(source.elementType, target.elementType, changes, by_position=by_position)
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = ((source.keyType, target.keyType), (source.valueType, target.valueType))
        return any(changes_inside(*pair, changes, by_position=by_position) for pair in pairs)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = paired_fields(source, target, by_position=by_position)  # none: Spark refuses the cast
        return positions not in ([], list(range(len(target)))) or any(
            changes_inside(source.fields[at].dataType, field.dataType, changes, by_position=by_position)
            for at, field in zip(positions, target.fields, strict=False)
        )
    return changes(source, target)


def is_assignable(source: DataType, target: DataType, *, by_position: bool) -> bool:
    """Return True if values of a type can be stored by ANSI rules."""
    return _all_pairs(source, target, _is_assignable_value, by_position=by_position)


def _is_assignable_value(source: DataType, target: DataType) -> bool:
    """Return True if values of a type that is not nested can be stored by ANSI rules."""
    if isinstance(source, NullType) or (type(source) is type(target) and not is_nested(target)):
        return True
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return True
    if isinstance(source, TIMES) and isinstance(target, TIMES):
        return True
    return isinstance(target, StringType) and not is_nested(source)


def can_up_cast(source: DataType, target: DataType, *, by_position: bool) -> bool:
    """Return True if Spark casts all values of a type without a loss, as the policy STRICT requires."""
    return _all_pairs(source, target, _is_lossless, by_position=by_position)


def _is_lossless(source: DataType, target: DataType) -> bool:
    """Return True if two types are the same, or values of one that is not nested are cast without a loss."""
    if isinstance(source, NullType) or source == target:
        return True
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return _is_wider(source, target)
    if isinstance(source, TIMES) and isinstance(target, _STAMPS):
        return True
    if {type(source), type(target)} == {TimestampType, LongType}:
        return True
    return isinstance(source, AtomicType) and isinstance(target, StringType)


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
        return fits and not isinstance(source, FLOATS)
    return isinstance(source, DecimalType) and source.scale == 0 and source.precision < _DIGITS.get(type(target), 0)
