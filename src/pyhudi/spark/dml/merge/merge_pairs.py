"""Pairs of rows to which the clauses of a MERGE apply, from a join of its source with the table.

If the condition only equates columns, the source is joined with the table by an inner join, so that Spark can broadcast
a small source and need not shuffle the table. Source rows without a match are determined afterwards, as those whose
values of these columns are in no pair. Other conditions, and clauses for rows without a matching source row, require an
outer join.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import as_column
from pyhudi.spark.dml.merge.clause_evaluation import CLAUSE, EQUATED, IN_TARGET, ROW_ID, ClauseEvaluator
from pyhudi.spark.dml.merge.merge_as_upsert import has_plain_keys
from pyhudi.spark.dml.merge.merge_clauses import MergeAction
from pyhudi.spark.dml.merge.merge_source import MergeSource, SourceSummary
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.slice_tasks import coalesced
from pyhudi.sql.statements import ClauseKind

FEW_ROWS = 100_000
"""Number of source rows, or of pairs, up to which Spark's plans of their joins are not made adaptive."""
_MATCHED = "_pyhudi_matched_"


@dataclass(frozen=True, slots=True)
class MergePairs:
    """Pairs of rows to which a clause applies.

    Attributes:
        rows: New and stored values, locations, and the number of the clause.
        unique: No row of the table is in two pairs.
        new_keys: Source rows without a match have keys that the table does not have.
        unassigned: Columns of which updates have no values (`TargetTable.unassigned`).
    """

    rows: DataFrame
    unique: bool = False
    new_keys: bool = False
    unassigned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MergeJoin:
    """Join of the source of a MERGE with the table."""

    source: MergeSource

    @property
    def _evaluator(self) -> ClauseEvaluator:
        return self.source.evaluator

    @property
    def _target(self) -> TargetTable:
        return self.source.evaluator.target

    def pairs(self, cached: CachedFrames) -> MergePairs:
        """Return the pairs to which a clause applies. Runs Spark jobs.

        Args:
            cached: Persists DataFrames that are evaluated more than once.
        """
        return self._equated_pairs(cached) if self._only_equates else self._outer_pairs(cached)

    def describe(self) -> str:
        """Describe in a line how rows of the table and of the source are matched."""
        if not self._only_equates:
            return f"{self._join_type()} join of the table with the source on {self.source.on}"
        has_unmatched = self._evaluator.has(ClauseKind.NOT_MATCHED)
        searched = ", then a search for source rows without a match" if has_unmatched else ""
        return f"inner join of the table with the source on {self.source.on}{searched}"

    @property
    def _only_equates(self) -> bool:
        """True if the condition only equates columns, and no clause is for rows without a matching source row."""
        return bool(self.source.equated) and not self._evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE)

    def _target_rows(self) -> DataFrame:
        row_id = F.monotonically_increasing_id().alias(ROW_ID)
        return self._target.rows.select("*", row_id, F.lit(True).alias(IN_TARGET)).alias(self._evaluator.alias)

    def _outer_pairs(self, cached: CachedFrames) -> MergePairs:
        """Return the pairs of any condition."""
        joined = self._target_rows().join(self.source.marked(), as_column(self.source.on), self._join_type())
        unassigned = self._unassigned(new_keys=False)
        pairs = self._evaluator.evaluate(joined, tuple(ClauseKind), unassigned, self.source.equated)
        return MergePairs(cached.add(pairs.where(F.col(CLAUSE).isNotNull())), unassigned=unassigned)

    def _join_type(self) -> str:
        """Return the type of the join of table and source that keeps all rows to which clauses apply."""
        evaluator = self._evaluator
        if evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE):
            return "full" if evaluator.has(ClauseKind.NOT_MATCHED) else "left"
        return "right" if evaluator.has(ClauseKind.NOT_MATCHED) else "inner"

    def _equated_pairs(self, cached: CachedFrames) -> MergePairs:
        """Return the pairs of a condition that only equates columns."""
        evaluator, equated, rows = self._evaluator, self.source.equated, self._target_rows()
        source = cached.add(self.source.marked())
        summary = self.source.summarize(source)  # Before Spark plans a join of the source with cached rows.
        new_keys = summary.exact and self._inserts_by_key()
        unassigned = self._unassigned(new_keys=new_keys)
        pairs = rows.join(source, as_column(self.source.on))
        adaptive = summary.count > FEW_ROWS  # Spark knows its size, and broadcasts it unless rows are wide.
        parts = []
        if evaluator.has(ClauseKind.MATCHED):
            pairs = evaluator.evaluate(pairs, (ClauseKind.MATCHED,), unassigned, equated)
            pairs = cached.add(pairs, adaptive=adaptive)
            parts.append(pairs)
        if evaluator.has(ClauseKind.NOT_MATCHED):
            others = self._unmatched(source, pairs, summary)
            # With the columns of the table, which are null.
            others = rows.limit(0).join(others, F.lit(False), "right")
            others = evaluator.evaluate(others, (ClauseKind.NOT_MATCHED,), unassigned, equated)
            parts.append(cached.add(others, adaptive=adaptive))
        matched = reduce(lambda some, more: some.unionByName(more), parts).where(F.col(CLAUSE).isNotNull())
        return MergePairs(matched, summary.unique, new_keys, unassigned)

    def _unmatched(self, source: DataFrame, pairs: DataFrame, summary: SourceSummary) -> DataFrame:
        """Return the source rows that are in no pair.

        Rows are compared by value, because row numbers could change if Spark recomputed evicted rows of a cache.
        """
        names = self.source.equated
        values = (F.col(quoted([EQUATED + name])).alias(_MATCHED + name) for name in names)
        matched = pairs.select(*values)
        if not (summary.unique and self._matches_one_record()):
            # there may be many more pairs than source rows, too many to broadcast
            matched = matched.distinct()
            matched = coalesced(matched) if summary.count <= FEW_ROWS else matched
        if summary.count <= self._target.opts.get_typed(options.INDEX_BROADCAST_ROWS):
            matched = F.broadcast(matched)
        same = [F.col(quoted([EQUATED + name])) == F.col(quoted([_MATCHED + name])) for name in names]
        return source.join(matched, same, "left_anti")

    def _matches_one_record(self) -> bool:
        """Return True if the condition equates all columns that identify a record, so that a source row matches at most
        one."""
        keys, partitions = self._identifying_columns()
        return bool(keys) and keys | partitions <= (self.source.equated_by_name or frozenset())

    def _inserts_by_key(self) -> bool:
        """Return True if source rows without a match were matched by the key with which they are inserted."""
        evaluator, equated = self._evaluator, self.source.equated_by_name
        if equated is None or evaluator.moves or not has_plain_keys(self._target.spec):
            return False
        if any(clause.action is MergeAction.INSERT and clause.values is not None for clause in evaluator.clauses):
            return False
        keys, partitions = self._identifying_columns()
        return keys <= equated <= keys | partitions

    def _identifying_columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the lower-case names of the columns that identify a record: those of the record key, and those of the
        partition (none with a global index)."""
        target = self._target
        is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
        partitions = () if is_global else target.partition_columns
        return frozenset(map(str.lower, target.spec.record_fields)), frozenset(map(str.lower, partitions))

    def _unassigned(self, *, new_keys: bool) -> frozenset[str]:
        """Return the columns that updates may omit.

        There are none if a source row without a match may have a key that the table has, because it is then an update
        of all columns. Otherwise new records still need the columns of their keys (``new_keys``).
        """
        evaluator, target = self._evaluator, self._target
        inserts = evaluator.has(ClauseKind.NOT_MATCHED)
        if evaluator.moves or (inserts and not new_keys):
            return frozenset()
        unassigned = target.unassigned(evaluator.assigned)
        return unassigned - target.placing_columns if inserts else unassigned
