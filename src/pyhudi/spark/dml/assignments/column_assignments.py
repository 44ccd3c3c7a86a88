"""Assignments of new values to columns, converted to the types of the table."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence, Set

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from pyhudi.errors import QueryError, SchemaMismatchError
from pyhudi.schema.name_resolution import matches_ignoring_case, resolve_name
from pyhudi.spark.column_names import expression, quoted
from pyhudi.spark.dml.assignments.row_expressions import row_expression_types
from pyhudi.spark.dml.assignments.store_assignment import StoreRules, stored_as
from pyhudi.spark.session_settings import is_column

AssignedPath = tuple[str, ...]
"""Name of a column, or the names on the path to a field in it."""


def as_column(value: object) -> Column:
    """Return a Column, or SQL text as a Column.

    Raises:
        QueryError: The value is neither.
    """
    if isinstance(value, str):
        return expression(value)
    if not is_column(value):
        raise QueryError(
            f"conditions and new values are SQL texts or Columns, but {value!r} is a value of the type "
            f"{type(value).__name__}; write it as SQL text, or as functions.lit({value!r})"
        )
    return value


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
    column = resolve_name(name, schema.names, case_sensitive=case_sensitive)
    return [column] if column is not None else _resolved_path(name.split("."), schema, case_sensitive=case_sensitive)


def _resolved_path(steps: Sequence[str], schema: StructType, *, case_sensitive: bool) -> list[str]:
    """Return a path into structs by the names of the table.

    Raises:
        SchemaMismatchError: There is no such column or field.
    """
    path = [column_of(steps[0], schema, case_sensitive=case_sensitive)]
    data_type = schema[path[0]].dataType
    for step in steps[1:]:
        names = data_type.names if isinstance(data_type, StructType) else []
        name = resolve_name(step, names, case_sensitive=case_sensitive)
        if name is None or not isinstance(data_type, StructType):
            fields = f"its fields are {', '.join(names)}" if names else f"its type is {data_type.simpleString()}"
            raise SchemaMismatchError(f"{'.'.join(path)!r} has no field {step!r}; {fields}")
        path.append(name)
        data_type = data_type[name].dataType
    return path


def resolve_assignments(
    assigned: Mapping[str, object],
    schema: StructType,
    *,
    case_sensitive: bool,
    alias: str | None,
    inserts: bool = False,
) -> dict[AssignedPath, object]:
    """Return assignments by the table's names of their columns and fields.

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
    assignments: dict[AssignedPath, object] = {}
    structs: set[AssignedPath] = set()
    for column, value in assigned.items():
        path = tuple(_assigned_path(column, schema, alias, case_sensitive=case_sensitive))
        outer = _outer_paths(path)
        if inserts and outer:
            raise SchemaMismatchError(
                f"INSERT cannot assign only the field {column!r}; give the whole column {path[0]!r}"
            )
        twice = path if path in structs else next((part for part in (*outer, path) if part in assignments), None)
        if twice:
            raise QueryError(f"the column {'.'.join(twice)!r} is assigned twice")
        assignments[path] = value
        structs.update(outer)
    return assignments


def assigned_values(
    assignments: Mapping[AssignedPath, object], schema: StructType, alias: str | None
) -> dict[str, Column]:
    """Return the new values of columns; those of structs with changed fields have the values of the other fields.

    Args:
        assignments: SQL texts or Columns by the path of the column or field.
        schema: The table's own columns.
        alias: Name of the table in the statement.
    """
    structs = {outer for path in assignments for outer in _outer_paths(path)}
    return {
        name: _with_fields(
            F.col(quoted([alias, name] if alias else [name])), schema[name], (name,), assignments, structs
        )
        for name in dict.fromkeys(path[0] for path in assignments)
    }


def _outer_paths(path: AssignedPath) -> list[AssignedPath]:
    """Return the paths of the structs that contain a field, from the outermost."""
    return [path[:length] for length in range(1, len(path))]


def _with_fields(
    before: Column,
    field: StructField,
    path: AssignedPath,
    assignments: Mapping[AssignedPath, object],
    structs: Set[AssignedPath],
) -> Column:
    """Return the new value of a column or field. A struct that is null becomes one whose other fields are null, as in
    Spark's own UPDATE; `Column.withField` would leave it null.

    Args:
        before: The value without the assignments.
        field: The column or field.
        path: Its path.
        assignments: New values by path.
        structs: Paths of the structs of which fields are assigned.
    """
    if path in assignments:
        return as_column(assignments[path])
    if path not in structs:
        return before
    assert isinstance(field.dataType, StructType)
    fields = (
        _with_fields(before.getField(inner.name), inner, (*path, inner.name), assignments, structs).alias(inner.name)
        for inner in field.dataType
    )
    return F.struct(*fields)


def _assigned_path(name: str, schema: StructType, alias: str | None, *, case_sensitive: bool) -> list[str]:
    parts = split_name(name)
    if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower():
        # As Spark resolves it: a column of the table's name, before a field of a column that is called like the table.
        is_column = resolve_name(parts[1], schema.names, case_sensitive=case_sensitive) is not None
        if is_column or parts[0] not in schema.names:
            parts = parts[1:]
    return [name] if name in schema.names else _resolved_path(parts, schema, case_sensitive=case_sensitive)


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


def convert_values(rows: DataFrame, values: Mapping[str, Column], schema: StructType) -> dict[str, Column]:
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
        QueryError: A value has a window function, an aggregate, or a function that makes several rows.
        AnalysisException: Spark cannot resolve an expression.
    """
    rules = StoreRules.for_changes(rows.sparkSession)
    kinds = row_expression_types(rows, {f"the new value of {name!r}": value for name, value in values.items()})
    return {
        name: stored_as(value, kind, schema[name].dataType, name, rules)
        for (name, value), kind in zip(values.items(), kinds, strict=True)
    }
