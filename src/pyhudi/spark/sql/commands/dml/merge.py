"""MERGE INTO."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.dml.merge.merge_builder import MergeBuilder
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction, check_action
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, full_name
from pyhudi.spark.sql.commands.command_target import own_schema, write_options
from pyhudi.spark.sql.commands.dml.column_qualifiers import with_qualifiers, with_target_qualifiers
from pyhudi.spark.sql.commands.dml.repeated_query import RepeatedQuery, RepeatedSubqueries
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.view_registry import folded
from pyhudi.sql.rewriting.alias_rewriting import source_alias, source_name
from pyhudi.sql.statements import Merge, Name
from pyhudi.storage import open_storage
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import ChangeResult

_SOURCE, _TARGET = "_pyhudi_source", "_pyhudi_target"


def run_merge(spark: SparkSession, table: CatalogTable, statement: Merge) -> None:
    """Run MERGE, again after conflicts according to the options."""
    opts = Options.parse(write_options(spark, table))
    merge = _RepeatedMerge(spark, table, statement, opts)

    def attempt() -> ChangeResult:
        pinned = TargetSnapshot.pin(spark, table.location, opts)
        return merge.builder().execute_pinned(pinned)

    with_retries(merge.query.storage, opts, attempt, merge.reads_same_snapshot)


def plan_merge(spark: SparkSession, table: CatalogTable, statement: Merge) -> MergeBuilder:
    """Return a MERGE that has not been run."""
    return _RepeatedMerge(spark, table, statement, Options.parse(write_options(spark, table))).builder()


class _RepeatedMerge:
    """MERGE whose source and subqueries each attempt reads anew."""

    def __init__(self, spark: SparkSession, table: CatalogTable, statement: Merge, opts: Options) -> None:
        self._table, self._opts = table, opts
        self._names = _MergeNames.from_statement(spark, table, statement)
        self._statement = self._names.with_short_qualifiers(spark, table, statement)
        self._clauses = _clauses(self._statement)
        query = f"SELECT * FROM {self._statement.source}"
        self.query = RepeatedQuery(spark, query, open_storage(table.location, opts))
        self._subqueries = RepeatedSubqueries(spark, table, self.query.storage)

    def builder(self) -> MergeBuilder:
        """Read the source, and return the MERGE with it."""
        source, names, rewritten = self.query.rows(), self._names, self._subqueries.rewritten
        builder = MergeBuilder(
            self._table.location,
            self._opts,
            names.target,
            source if names.source is None else source.alias(names.source),
            rewritten(self._statement.on),
            source_alias=names.source,
        )
        for clause in self._clauses:
            builder = builder.with_clause(clause.with_texts(rewritten))
        return builder

    def reads_same_snapshot(self) -> bool:
        """Return True if another attempt would read the snapshot of the target that the last one has read."""
        return self.query.reads_same_snapshot() or self._subqueries.read_same_snapshot()


def _clauses(statement: Merge) -> tuple[Clause, ...]:
    """Return the clauses of a statement.

    Raises:
        QueryError: A clause has an action that its rows do not allow.
    """
    clauses = tuple(
        Clause(clause.kind, MergeAction[clause.action], clause.values, clause.condition) for clause in statement.clauses
    )
    for clause in clauses:
        check_action(clause)
    return clauses


@dataclass(frozen=True, slots=True)
class _MergeNames:
    """Names of the target and the source of a MERGE in its condition and clauses.

    Attributes:
        target: Alias of the target.
        source: Alias of the source; None: it has none.
        source_name: The source's full name if it is a table without an alias.
        same_name: The last parts of both names are the same, so both get unique aliases.
    """

    target: str
    source: str | None
    source_name: Name | None = None
    same_name: bool = False

    @classmethod
    def from_statement(cls, spark: SparkSession, table: CatalogTable, statement: Merge) -> _MergeNames:
        """Return the names in a statement. Two tables with the same last part are distinguished by their databases."""
        target = statement.alias or statement.name[-1]
        name = source_name(statement.source)
        if name is None:
            return cls(target, source_alias(statement.source))
        name = name if len(name) > 2 else (SESSION_CATALOG, *full_name(spark, name))
        target_name = (SESSION_CATALOG, *table.name)
        same_name = (
            statement.alias is None
            and folded(name) != folded(target_name)
            and folded(name[-1:]) == folded(target_name[-1:])
        )
        return cls(_TARGET, _SOURCE, name, True) if same_name else cls(target, source_alias(statement.source), name)

    def with_short_qualifiers(self, spark: SparkSession, table: CatalogTable, statement: Merge) -> Merge:
        """Return the statement with the names of both sides as qualifiers instead of full names, unless one of them has
        a column with the name of the source's database."""
        short = with_target_qualifiers(spark, table, statement, self.target if self.same_name else None)
        if self.source_name is None:
            return short
        changed = with_qualifiers(short, self.source_name, self.source if self.same_name else None)
        if changed == short:
            return short
        columns = spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {statement.source}").text).columns
        same_name = resolve_name(self.source_name[-2], [*columns, *own_schema(spark, table).names])
        return changed if same_name is None else short
