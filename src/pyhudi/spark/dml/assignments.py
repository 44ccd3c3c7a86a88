"""Assignments of new values to columns, converted to the types of the table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
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

from pyhudi.errors import QueryError, SchemaMismatchError
from pyhudi.schema.name_resolution import matches_ignoring_case, resolve_name, top_column
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.spark_types import resolve_spark_path

_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_FLOATS = (FloatType, DoubleType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_READ_FROM_TEXTS = (NumericType, BooleanType, *_TIMES)


def as_column(value: object) -> Column:
    """Return a Column, or SQL text as a Column."""
    return F.expr(value) if isinstance(value, str) else value


def column_of(name: str, schema: StructType, case_sensitive: bool) -> str:
    """Return the column of the table with a name, compared as the session does.

    Args:
        name: Name of the column.
        schema: Columns of the table.
        case_sensitive: Compare names case-sensitively.

    Raises:
        SchemaMismatchError: There is no such column.
    """
    column = resolve_name(name, schema.names, case_sensitive=case_sensitive)
    if column is not None:
        return column
    near = matches_ignoring_case(name, schema.names) or difflib.get_close_matches(name, schema.names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SchemaMismatchError(f"the table has no column {name!r}; its columns are {', '.join(schema.names)}{hint}")


def column_path(name: str, schema: StructType, case_sensitive: bool) -> list[str]:
    """Return the column of the table with a name, which may contain dots, or the steps of a dotted path into structs.

    Args:
        name: Name of the column, or path of the field.
        schema: Columns of the table.
        case_sensitive: Compare names case-sensitively.

    Raises:
        SchemaMismatchError: There is no such column or field.
    """
    path = resolve_spark_path(name, schema, case_sensitive=case_sensitive)
    if path is not None:
        return path
    column_of(top_column(name, schema.names), schema, case_sensitive)
    struct, _, field = name.rpartition(".")
    raise SchemaMismatchError(f"the table has no column {field!r} in {struct!r}")


def resolved(
    assigned: Mapping[str, object],
    schema: StructType,
    *,
    case_sensitive: bool,
    alias: str | None = None,
    inserts: bool = False,
) -> dict[str, object]:
    """Return assignments by the names of the table's columns.

    Args:
        assigned: SQL texts or Columns by column. A column may be qualified by ``alias``; dots lead into structs.
        schema: The table's own columns.
        case_sensitive: Compare names case-sensitively.
        alias: Name of the table in the statement.
        inserts: The values are those of new rows, in which fields cannot be assigned individually.

    Raises:
        SchemaMismatchError: A column does not exist, or a field of a new row is assigned.
        QueryError: A column is assigned twice, or none is.
    """
    if not assigned:
        raise QueryError("an update requires at least one assignment: {column: new value}")
    assignments: dict[str, object] = {}
    whole_columns: set[str] = set()
    for column, value in assigned.items():
        path = _path(column, schema, case_sensitive, alias)
        name, inner = path[0], quoted(path[1:])
        if name in whole_columns or (name in assignments and not inner):
            raise QueryError(f"the column {name!r} is assigned twice")
        if not inner:
            whole_columns.add(name)
        if inner and inserts:
            raise SchemaMismatchError(f"INSERT cannot assign only the field {column!r}; give the whole column {name!r}")
        if inner:
            before = assignments.get(name)
            base = F.col(quoted([alias, name] if alias else [name])) if before is None else before
            assignments[name] = as_column(base).withField(inner, as_column(value))
        else:
            assignments[name] = value
    return assignments


def _path(name: str, schema: StructType, case_sensitive: bool, alias: str | None) -> list[str]:
    parts = split_name(name)
    if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower() and parts[0] not in schema.names:
        parts = parts[1:]
    if name in schema.names:
        return [name]
    return [column_of(parts[0], schema, case_sensitive), *parts[1:]]


def split_name(name: str) -> list[str]:
    """Split a column name at its dots; backquotes of its parts are removed."""
    parts, part, within = [], "", False
    for position, letter in enumerate(name):
        if letter == "`":
            within = not within
            if within and name[position - 1 : position] == "`":
                part += "`"
        elif letter == "." and not within:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [*parts, part]


def stored_as(
    value: Column,
    source: DataType,
    target: DataType,
    name: str,
    *,
    reads_texts: bool = False,
    by_position: bool = False,
) -> Column:
    """Convert a value to the type of a column, by the rules of Spark's ANSI store assignment.

    Evaluation fails at a number that is out of range.

    Args:
        value: The value.
        source: Its type.
        target: Type of the column.
        name: Name of the column.
        reads_texts: Parse strings as numbers, booleans and times; evaluation fails at invalid ones.
        by_position: Match fields of structs by position instead of by name.

    Raises:
        SchemaMismatchError: Values of the type cannot be stored in the column.
    """
    if isinstance(target, ArrayType) and not target.containsNull:
        target = ArrayType(target.elementType)  # Spark casts no arrays that may have nulls; a write refuses these
    if source == target:
        return value
    if reads_texts and isinstance(source, StringType) and isinstance(target, _READ_FROM_TEXTS):
        return _read(value, target, name)
    if not _assignable(source, target, by_position):
        raise SchemaMismatchError(
            f"a value of type {source.simpleString()} cannot be stored in the column {name!r} of type "
            f"{target.simpleString()}; cast it"
        )
    if _is_nested(target) and _changes_inside(source, target, by_position):
        return _stored_inside(value, source, target, name, by_position)
    cast = value.cast(target)
    if isinstance(target, NumericType) and isinstance(source, NumericType):
        # A plain cast may overflow or return null, depending on the settings of the session.
        fits = cast.isNotNull()
        if isinstance(target, IntegralType):
            limit = 2 ** (_BITS[type(target)] - 1)
            ends = (float(-limit), float(limit)) if isinstance(source, _FLOATS) else (Decimal(-limit), Decimal(limit))
            fits = (value >= F.lit(ends[0])) & (value < F.lit(ends[1]))
        message = F.concat(F.lit("the value "), value.cast("string"), F.lit(f" does not fit the column {name!r}"))
        failure = F.raise_error(message).cast(target)
        return F.when(value.isNull() | F.coalesce(fits, F.lit(False)), cast).otherwise(failure)
    return cast


def _stored_inside(value: Column, source: DataType, target: DataType, name: str, by_position: bool) -> Column:
    """Convert a nested value to the type of a column, each value in it separately."""

    def inner(item: Column, item_type: DataType, stored: DataType) -> Column:
        return stored_as(item, item_type, stored, name, by_position=by_position)

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
        for at, field in zip(_paired(source, target, by_position), target.fields, strict=True)
    ]
    return F.when(value.isNotNull(), F.struct(*fields))


def _paired(source: StructType, target: StructType, by_position: bool) -> list[int]:
    """Return, for each field of a struct, the position of the field that provides its value; empty if the structs have
    different fields."""
    if len(source) != len(target):
        return []
    if by_position:
        return list(range(len(source)))
    names = [resolve_name(field.name, source.names) for field in target.fields]
    positions = [source.names.index(name) for name in names if name is not None]
    return positions if len(set(positions)) == len(target) else []


def has_same_names(source: DataType, target: DataType) -> bool:
    """Return True if all structs in two types have the same field names, in any order."""
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return has_same_names(source.elementType, target.elementType)
    if isinstance(source, MapType) and isinstance(target, MapType):
        keys = has_same_names(source.keyType, target.keyType)
        return keys and has_same_names(source.valueType, target.valueType)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = _paired(source, target, False)
        return bool(positions) and all(
            has_same_names(source.fields[at].dataType, field.dataType)
            for at, field in zip(positions, target.fields, strict=True)
        )
    return True


def _changes_inside(source: DataType, target: DataType, by_position: bool) -> bool:
    """Return True if nested numbers have another type, or nested fields another order."""
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _changes_inside(source.elementType, target.elementType, by_position)
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = ((source.keyType, target.keyType), (source.valueType, target.valueType))
        return any(_changes_inside(*pair, by_position) for pair in pairs)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = _paired(source, target, by_position)
        fields = zip(positions, target.fields, strict=True)
        return positions != list(range(len(target))) or any(
            _changes_inside(source.fields[at].dataType, field.dataType, by_position) for at, field in fields
        )
    return isinstance(source, NumericType) and isinstance(target, NumericType) and source != target


def _read(text: Column, target: DataType, name: str) -> Column:
    """Parse a string; evaluation fails at invalid ones. A plain cast returns null, truncates or fails, depending on the
    settings of the session."""
    trimmed = F.trim(text)
    fits = trimmed.rlike(r"^[+-]?\d+$") if isinstance(target, IntegralType) else F.lit(True)
    cast = F.when(fits, trimmed).cast(target)
    message = F.concat(F.lit("the text '"), text, F.lit(f"' is no {target.simpleString()}, as the column {name!r} has"))
    return F.when(text.isNull() | cast.isNotNull(), cast).otherwise(F.raise_error(message).cast(target))


def _assignable(source: DataType, target: DataType, by_position: bool) -> bool:
    if isinstance(source, NullType) or (type(source) is type(target) and not _is_nested(target)):
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _assignable(source.elementType, target.elementType, by_position)
    if isinstance(source, MapType) and isinstance(target, MapType):
        pairs = ((source.keyType, target.keyType), (source.valueType, target.valueType))
        return all(_assignable(*pair, by_position) for pair in pairs)
    if isinstance(source, StructType) and isinstance(target, StructType):
        positions = _paired(source, target, by_position)
        return bool(positions) and all(
            _assignable(source.fields[at].dataType, field.dataType, by_position)
            for at, field in zip(positions, target.fields, strict=True)
        )
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return True
    if isinstance(source, _TIMES) and isinstance(target, _TIMES):
        return True
    return isinstance(target, StringType) and not _is_nested(source) and not isinstance(source, BinaryType)


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | MapType | StructType)


def check_types(rows: DataFrame, values: Iterable[tuple[str, Column]], schema: StructType) -> dict[str, Column]:
    """Convert new values to the types of their columns. Runs no Spark job.

    Args:
        rows: Rows from which the values are computed.
        values: New values by column.
        schema: Columns of the table. Strings are parsed as values of their types.

    Returns:
        The converted values by column.

    Raises:
        SchemaMismatchError: A type cannot be converted to that of its column.
        AnalysisException: Spark cannot resolve an expression.
    """
    named = dict(values)
    aliases = {name: f"_pyhudi_value_{number}" for number, name in enumerate(named)}
    kinds = rows.select(*(value.alias(aliases[name]) for name, value in named.items())).schema
    return {
        name: stored_as(value, kinds[aliases[name]].dataType, schema[name].dataType, name, reads_texts=True)
        for name, value in named.items()
    }
