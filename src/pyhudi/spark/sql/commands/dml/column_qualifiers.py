"""Qualifiers of columns in a statement: full names of tables become their last part, or an alias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import SparkSession

from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable
from pyhudi.spark.sql.commands.command_target import own_schema
from pyhudi.sql.rewriting.alias_rewriting import with_short_qualifiers
from pyhudi.sql.statements import Delete, Merge, Name, Update

Change = TypeVar("Change", Update, Delete, Merge)


def with_target_qualifiers(
    spark: SparkSession, table: CatalogTable, statement: Change, alias: str | None = None
) -> Change:
    """Return a statement with the last part of the table's name, or its alias, as the qualifier of columns that were
    qualified by its full name. The statement is unchanged if a column of the table has the name of the database,
    because its fields are written the same way."""
    if statement.alias is not None:
        return statement
    changed = with_qualifiers(statement, (SESSION_CATALOG, *table.name), alias)
    if changed == statement or resolve_name(table.name[0], own_schema(spark, table).names) is not None:
        return statement
    return changed


def with_qualifiers(statement: Change, name: Name, alias: str | None) -> Change:
    """Return a statement with the last part of a name, or an alias, as the qualifier of columns qualified by the full
    name."""

    def short(text: str | None) -> str | None:
        return None if text is None else with_short_qualifiers(text, name, alias)

    def all_short(values: Mapping[str, str]) -> dict[str, str]:
        return {str(short(name)): str(short(value)) for name, value in values.items()}

    match statement:
        case Update():
            return replace(statement, assigned=all_short(statement.assigned), where=short(statement.where))
        case Delete():
            return replace(statement, where=short(statement.where))
        case Merge():
            clauses = tuple(
                replace(
                    clause,
                    condition=short(clause.condition),
                    values=None if clause.values is None else all_short(clause.values),
                )
                for clause in statement.clauses
            )
            return replace(statement, on=str(short(statement.on)), clauses=clauses)
