"""MERGE INTO."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.dml.merge_builder import MergeBuilder
from pyhudi.spark.dml.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.target_table import TargetSnapshot
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, full_name
from pyhudi.spark.sql.commands.command_target import own_schema, write_options
from pyhudi.spark.sql.commands.dml.column_qualifiers import with_qualifiers, with_target_qualifiers
from pyhudi.spark.sql.commands.dml.repeated_query import RepeatedQuery, RepeatedSubqueries
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.view_registry import folded
from pyhudi.sql.alias_rewriting import source_alias, source_name
from pyhudi.sql.statements import ClauseKind, Merge, Name
from pyhudi.storage import open_storage
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import ChangeResult

_SOURCE, _TARGET = "_pyhudi_source", "_pyhudi_target"


def run_merge(spark: SparkSession, table: CatalogTable, statement: Merge) -> None:
    """Run MERGE, again after conflicts according to the options."""
    names = _MergeNames.from_statement(spark, table, statement)
    statement = names.with_short_qualifiers(spark, table, statement)
    clauses = _clauses(statement)
    opts = Options.parse(write_options(spark, table))
    query = RepeatedQuery(spark, f"SELECT * FROM {statement.source}", open_storage(table.location, opts))
    subqueries = RepeatedSubqueries(spark, table, query.storage)

    def attempt() -> ChangeResult:
        pinned = TargetSnapshot.pin(spark, table.location, opts)
        source = query.rows()
        builder = MergeBuilder(
            table.location,
            opts,
            names.target,
            source if names.source is None else source.alias(names.source),
            subqueries.rewritten(statement.on),
            source_alias=names.source,
        )
        for clause in clauses:
            builder = builder.with_clause(clause.with_texts(subqueries.rewritten))
        return builder.execute_pinned(pinned)

    with_retries(query.storage, opts, attempt, lambda: query.reads_same_snapshot() or subqueries.read_same_snapshot())


def _clauses(statement: Merge) -> tuple[Clause, ...]:
    """Return the clauses of a statement.

    Raises:
        QueryError: A clause has an action that its rows do not allow.
    """
    clauses = tuple(
        Clause(clause.kind, MergeAction[clause.action], clause.values, clause.condition) for clause in statement.clauses
    )
    for clause in clauses:
        if (clause.action is MergeAction.INSERT) != (clause.kind is ClauseKind.NOT_MATCHED):
            raise QueryError(f"WHEN {clause.kind.value} cannot {clause.action.name}")
        is_update_all = clause.action is MergeAction.UPDATE and clause.values is None
        if clause.kind is ClauseKind.NOT_MATCHED_BY_SOURCE and is_update_all:
            raise QueryError("WHEN NOT MATCHED BY SOURCE has no source row to UPDATE SET * from")
    return clauses


@dataclass(frozen=True, slots=True)
class _MergeNames:
    """Names of the target and the source of a MERGE in its condition and clauses.

    Attributes:
        target: Alias of the target.
        source: Alias of the source; None: it has none.
        source_name: The source's full name if it is a table without an alias.
        alike: The last parts of both names are the same, so both get unique aliases.
    """

    target: str
    source: str | None
    source_name: Name | None = None
    alike: bool = False

    @classmethod
    def from_statement(cls, spark: SparkSession, table: CatalogTable, statement: Merge) -> _MergeNames:
        """Return the names in a statement. Two tables with the same last part are distinguished by their databases."""
        target = statement.alias or statement.name[-1]
        name = source_name(statement.source)
        if name is None:
            return cls(target, source_alias(statement.source))
        name = name if len(name) > 2 else (SESSION_CATALOG, *full_name(spark, name))
        target_name = (SESSION_CATALOG, *table.name)
        alike = (
            statement.alias is None
            and folded(name) != folded(target_name)
            and folded(name[-1:]) == folded(target_name[-1:])
        )
        return cls(_TARGET, _SOURCE, name, True) if alike else cls(target, source_alias(statement.source), name)

    def with_short_qualifiers(self, spark: SparkSession, table: CatalogTable, statement: Merge) -> Merge:
        """Return the statement with the names of both sides as qualifiers instead of full names, unless one of them has
        a column with the name of the source's database."""
        short = with_target_qualifiers(spark, table, statement, self.target if self.alike else None)
        if self.source_name is None:
            return short
        changed = with_qualifiers(short, self.source_name, self.source if self.alike else None)
        if changed == short:
            return short
        columns = spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {statement.source}").text).columns
        same_name = resolve_name(self.source_name[-2], [*columns, *own_schema(spark, table).names])
        return changed if same_name is None else short
