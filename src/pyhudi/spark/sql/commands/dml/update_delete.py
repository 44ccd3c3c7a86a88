"""UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.dml.target_table import TargetSnapshot
from pyhudi.spark.dml.update import delete_pinned, update_pinned
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.spark.sql.commands.dml.column_qualifiers import with_target_qualifiers
from pyhudi.spark.sql.commands.dml.repeated_query import RepeatedSubqueries
from pyhudi.sql.alias_rewriting import unqualified
from pyhudi.sql.statements import Delete, Update
from pyhudi.storage import open_storage
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import ChangeResult


def run_update(spark: SparkSession, table: CatalogTable, statement: Update) -> None:
    """Run UPDATE."""
    statement = with_target_qualifiers(spark, table, statement)
    alias = statement.alias or statement.name[-1]

    def attempt(pinned: TargetSnapshot, subqueries: RepeatedSubqueries) -> ChangeResult:
        assigned = {name: subqueries.rewritten(value) for name, value in statement.assigned.items()}
        where = None if statement.where is None else subqueries.rewritten(statement.where)
        whole = subqueries.read_target
        plain = {name: _plain(name, alias, pinned) for name in assigned}
        values = {name: _plain(value, alias, pinned) for name, value in assigned.items()}
        condition = None if where is None else _plain(where, alias, pinned)
        if None in (*plain.values(), *values.values()) or (where is not None and condition is None):
            return update_pinned(spark, pinned, assigned, where, alias, reads_whole_table=whole)
        if len(set(plain.values())) < len(assigned):
            raise QueryError(f"a column is assigned twice: {', '.join(assigned)}")
        plain_values = {str(plain[name]): value for name, value in values.items()}
        return update_pinned(spark, pinned, plain_values, condition, reads_whole_table=whole)

    _run(spark, table, attempt)


def run_delete(spark: SparkSession, table: CatalogTable, statement: Delete) -> None:
    """Run DELETE."""
    statement = with_target_qualifiers(spark, table, statement)
    alias = statement.alias or statement.name[-1]

    def attempt(pinned: TargetSnapshot, subqueries: RepeatedSubqueries) -> ChangeResult:
        where = None if statement.where is None else subqueries.rewritten(statement.where)
        whole, condition = subqueries.read_target, None if where is None else _plain(where, alias, pinned)
        if where is not None and condition is None:
            return delete_pinned(spark, pinned, where, alias, reads_whole_table=whole)
        return delete_pinned(spark, pinned, condition, reads_whole_table=whole)

    _run(spark, table, attempt)


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
