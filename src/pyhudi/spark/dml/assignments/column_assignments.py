"""Assignments of new values to columns, converted to the types of the table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from pyhudi.errors import QueryError, SchemaMismatchError
from pyhudi.schema.name_resolution import matches_ignoring_case, resolve_name
from pyhudi.spark.column_names import expression, quoted
from pyhudi.spark.dml.assignments.row_expressions import row_expression_types
from pyhudi.spark.dml.assignments.store_assignment import StoreRules, stored_as


def as_column(value: object) -> Column:
    """Return a Column, or SQL text as a Column."""
    return expression(value) if isinstance(value, str) else value


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
        name, *inner = _assigned_path(column, schema, alias, case_sensitive=case_sensitive)
        if name in whole_columns or (name in assignments and not inner):
            raise QueryError(f"the column {name!r} is assigned twice")
        if not inner:
            whole_columns.add(name)
        if inner and inserts:
            raise SchemaMismatchError(f"INSERT cannot assign only the field {column!r}; give the whole column {name!r}")
        if inner:
            before = assignments.get(name)
            base = F.col(quoted([alias, name] if alias else [name])) if before is None else before
            assignments[name] = _with_field(as_column(base), schema[name].dataType, inner, as_column(value))
        else:
            assignments[name] = value
    return assignments


def _with_field(struct: Column, data_type: DataType, path: Sequence[str], value: Column) -> Column:
    """Return a struct with the value of one field replaced. A struct that is null becomes one whose other fields are
    null, as in Spark's own UPDATE; `Column.withField` would leave it null."""
    if not path:
        return value
    assert isinstance(data_type, StructType)
    step, *inner = path
    before = {field.name: struct.getField(field.name) for field in data_type}
    after = before | {step: _with_field(before[step], data_type[step].dataType, inner, value)}
    return F.struct(*(column.alias(name) for name, column in after.items()))


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


def convert_values(rows: DataFrame, values: Iterable[tuple[str, Column]], schema: StructType) -> dict[str, Column]:
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
    named = dict(values)
    kinds = row_expression_types(rows, {f"the new value of {name!r}": value for name, value in named.items()})
    return {
        name: stored_as(value, kind, schema[name].dataType, name, rules)
        for (name, value), kind in zip(named.items(), kinds, strict=True)
    }
