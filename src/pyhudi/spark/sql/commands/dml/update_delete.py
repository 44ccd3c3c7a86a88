"""UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.dml.update import RowSelection, delete_pinned, planned_delete, planned_update, update_pinned
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.spark.sql.commands.dml.column_qualifiers import with_target_qualifiers
from pyhudi.spark.sql.commands.dml.repeated_query import RepeatedSubqueries
from pyhudi.sql.rewriting.alias_rewriting import unqualified
from pyhudi.sql.statements import Delete, Update
from pyhudi.storage import open_storage
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import ChangeResult


def run_update(spark: SparkSession, table: CatalogTable, statement: Update) -> None:
    """Run UPDATE."""
    statement = with_target_qualifiers(spark, table, statement)

    def attempt(pinned: TargetSnapshot, subqueries: RepeatedSubqueries) -> ChangeResult:
        return update_pinned(spark, pinned, *_resolved(statement, pinned, subqueries))

    _run(spark, table, attempt)


def run_delete(spark: SparkSession, table: CatalogTable, statement: Delete) -> None:
    """Run DELETE."""
    statement = with_target_qualifiers(spark, table, statement)

    def attempt(pinned: TargetSnapshot, subqueries: RepeatedSubqueries) -> ChangeResult:
        _, rows = _resolved(statement, pinned, subqueries)
        return delete_pinned(spark, pinned, rows)

    _run(spark, table, attempt)


def plan_change(
    spark: SparkSession, table: CatalogTable, statement: Update | Delete, pinned: TargetSnapshot
) -> tuple[TargetTable, DataFrame]:
    """Return the table as UPDATE or DELETE reads it, and the new values, or the rows to delete. Nothing is written."""
    subqueries = RepeatedSubqueries(spark, table, pinned.client.storage)
    if isinstance(statement, Delete):
        _, rows = _resolved(with_target_qualifiers(spark, table, statement), pinned, subqueries)
        return planned_delete(spark, pinned, rows)
    return planned_update(
        spark, pinned, *_resolved(with_target_qualifiers(spark, table, statement), pinned, subqueries)
    )


def _resolved(
    statement: Update | Delete, pinned: TargetSnapshot, subqueries: RepeatedSubqueries
) -> tuple[Mapping[str, str], RowSelection]:
    """Return the assigned values (none: it is a DELETE), and the rows. Names are qualified only where they have to
    be."""
    alias = statement.alias or statement.name[-1]
    new_values = statement.assigned if isinstance(statement, Update) else {}
    assigned = {name: subqueries.rewritten(value) for name, value in new_values.items()}
    where = None if statement.where is None else subqueries.rewritten(statement.where)
    plain = {name: _plain(name, alias, pinned) for name in assigned}
    values = {name: _plain(value, alias, pinned) for name, value in assigned.items()}
    condition = None if where is None else _plain(where, alias, pinned)
    whole = subqueries.read_target
    if None in (*plain.values(), *values.values()) or (where is not None and condition is None):
        return assigned, RowSelection(where, alias, whole)
    if len(set(plain.values())) < len(assigned):
        raise QueryError(f"a column is assigned twice: {', '.join(assigned)}")
    named = {str(plain[name]): str(value) for name, value in values.items()}
    return named, RowSelection(condition, reads_whole_table=whole)


def _plain(text: str, alias: str, pinned: TargetSnapshot) -> str | None:
    """Return a text without the table's name or alias before its columns; None if only Spark can tell what it
    qualifies, such as the fields of a column of this name."""
    plain = unqualified(text, alias)
    is_column = plain != text and resolve_name(alias, pinned.schema.names) is not None
    return None if is_column else plain


def _run(
    spark: SparkSession, table: CatalogTable, attempt: Callable[[TargetSnapshot, RepeatedSubqueries], ChangeResult]
) -> None:
    """Run a statement on the latest snapshot of a table, again after conflicts if the options say so."""
    opts = Options.parse(write_options(spark, table))
    subqueries = RepeatedSubqueries(spark, table, open_storage(table.location, opts))
    with_retries(
        subqueries.storage,
        opts,
        lambda: attempt(TargetSnapshot.pin(spark, table.location, opts), subqueries),
        subqueries.read_same_snapshot,
    )
