"""Assignments of new values to columns, converted to the types of the table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from pyhudi.errors import QueryError, SchemaMismatchError
from pyhudi.schema.name_resolution import matches_ignoring_case, resolve_name, top_column
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.store_assignment import StoreRules, stored_as
from pyhudi.spark.spark_types import resolve_spark_path


def as_column(value: object) -> Column:
    """Return a Column, or SQL text as a Column."""
    return F.expr(value) if isinstance(value, str) else value


def column_of(name: str, schema: StructType, *, case_sensitive: bool) -> str:
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


def column_path(name: str, schema: StructType, *, case_sensitive: bool) -> list[str]:
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
    column_of(top_column(name, schema.names), schema, case_sensitive=case_sensitive)
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
        path = _path(column, schema, alias, case_sensitive=case_sensitive)
        name, inner = path[0], path[1:]
        if name in whole_columns or (name in assignments and not inner):
            raise QueryError(f"the column {name!r} is assigned twice")
        if not inner:
            whole_columns.add(name)
        if inner and inserts:
            raise SchemaMismatchError(f"INSERT cannot assign only the field {column!r}; give the whole column {name!r}")
        if inner:
            before = assignments.get(name)
            base = F.col(quoted([alias, name] if alias else [name])) if before is None else before
            fields = _fields(inner, name, schema[name].dataType, case_sensitive=case_sensitive)
            assignments[name] = _with_field(as_column(base), schema[name].dataType, fields, as_column(value))
        else:
            assignments[name] = value
    return assignments


def _fields(path: Sequence[str], column: str, kind: DataType, *, case_sensitive: bool) -> list[str]:
    """Return the fields on a path into a column, by their names in its type.

    Raises:
        SchemaMismatchError: There is no such field.
    """
    found: list[str] = []
    for step in path:
        names = kind.names if isinstance(kind, StructType) else []
        name = resolve_name(step, names, case_sensitive=case_sensitive)
        if name is None or not isinstance(kind, StructType):
            struct = ".".join([column, *found])
            fields = f"its fields are {', '.join(names)}" if names else f"its type is {kind.simpleString()}"
            raise SchemaMismatchError(f"{struct!r} has no field {step!r}; {fields}")
        found.append(name)
        kind = kind[name].dataType
    return found


def _with_field(struct: Column, kind: DataType, path: Sequence[str], value: Column) -> Column:
    """Return a struct with the value of one field replaced. A struct that is null becomes one whose other fields are
    null, as in Spark's own UPDATE; `Column.withField` would leave it null."""
    if not path:
        return value
    assert isinstance(kind, StructType)
    step, *inner = path
    before = {field.name: struct.getField(field.name) for field in kind}
    after = before | {step: _with_field(before[step], kind[step].dataType, inner, value)}
    return F.struct(*(column.alias(name) for name, column in after.items()))


def _path(name: str, schema: StructType, alias: str | None, *, case_sensitive: bool) -> list[str]:
    parts = split_name(name)
    if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower() and parts[0] not in schema.names:
        parts = parts[1:]
    if name in schema.names:
        return [name]
    return [column_of(parts[0], schema, case_sensitive=case_sensitive), *parts[1:]]


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


def check_types(rows: DataFrame, values: Iterable[tuple[str, Column]], schema: StructType) -> dict[str, Column]:
    """Convert new values to the types of their columns. Runs no Spark job.

    Args:
        rows: Rows from which the values are computed.
        values: New values by column.
        schema: Columns of the table. Strings are parsed as values of their types.

    Returns:
        The converted values by column.

    Raises:
        ConfigError: The policy of store assignment is LEGACY, a value may not fit, and the session has ANSI mode.
        SchemaMismatchError: A type cannot be converted to that of its column.
        AnalysisException: Spark cannot resolve an expression.
    """
    rules = StoreRules.for_changes(rows.sparkSession)
    named = dict(values)
    aliases = {name: f"_pyhudi_value_{number}" for number, name in enumerate(named)}
    kinds = rows.select(*(value.alias(aliases[name]) for name, value in named.items())).schema
    return {
        name: stored_as(value, kinds[aliases[name]].dataType, schema[name].dataType, name, rules)
        for name, value in named.items()
    }
