"""MERGE: updates, deletes and inserts of rows by matching a source with the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame

from pyhudi.config import Options, options
from pyhudi.config.enums import MergeMode, Operation, TableType
from pyhudi.errors import QueryError
from pyhudi.spark.dml.merge.clause_evaluation import ClauseEvaluator
from pyhudi.spark.dml.merge.inserted_keys import with_replaced_rows
from pyhudi.spark.dml.merge.merge_as_upsert import key_columns, rows_to_upsert
from pyhudi.spark.dml.merge.merge_changes import MergeChanges
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.merge.merge_counts import MergeCounts, count_changes
from pyhudi.spark.dml.merge.merge_pairs import MergeJoin
from pyhudi.spark.dml.merge.merge_source import MergeSource
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.dml.target_table import TargetTable, read_target
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.lookup.key_constraint import KeyConstraint, KeyConstraintError
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.dml_commit import DmlCommit
from pyhudi.sql.conditions.merge_condition import MergeSides, equality_text
from pyhudi.sql.statements import ClauseKind
from pyhudi.storage import open_storage
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import ChangeResult


@dataclass(frozen=True, slots=True)
class MergeBuilder:
    """Builder of a MERGE, as in Delta Lake. Clauses are evaluated in order, and the first one that applies to a row is
    executed. Immutable; `execute` runs the MERGE."""

    path: str
    opts: Options
    alias: str
    source: DataFrame
    on: str | Column
    clauses: tuple[Clause, ...] = ()
    source_alias: str | None = None
    """Name of the source in the condition, if known."""

    def when_matched_update(self, set: Mapping[str, object], condition: str | Column | None = None) -> MergeBuilder:
        """Update a row that matches a source row.

        Args:
            set: New values by column of the table, as SQL texts or Columns of both sides.
            condition: Restrict the clause to pairs of rows that meet this condition, SQL text or a Column; None: all.

        Returns:
            The MERGE with this clause after the others.

        Raises:
            QueryError: An earlier clause for such rows has no condition, so this one would never apply.
        """
        return self.with_clause(Clause(ClauseKind.MATCHED, MergeAction.UPDATE, dict(set), condition))

    def when_matched_update_all(self, condition: str | Column | None = None) -> MergeBuilder:
        """Update all columns of a matching row from the columns of the source with the same names.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(ClauseKind.MATCHED, MergeAction.UPDATE, None, condition))

    def when_matched_delete(self, condition: str | Column | None = None) -> MergeBuilder:
        """Delete a matching row.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(ClauseKind.MATCHED, MergeAction.DELETE, None, condition))

    def when_not_matched_insert(
        self, values: Mapping[str, object], condition: str | Column | None = None
    ) -> MergeBuilder:
        """Insert a source row without a match; columns of the table without a value are null.

        ``values``: values by column of the table. Condition, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(ClauseKind.NOT_MATCHED, MergeAction.INSERT, dict(values), condition))

    def when_not_matched_insert_all(self, condition: str | Column | None = None) -> MergeBuilder:
        """Insert a source row without a match, its columns by name.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(ClauseKind.NOT_MATCHED, MergeAction.INSERT, None, condition))

    def when_not_matched_by_source_update(
        self, set: Mapping[str, object], condition: str | Column | None = None
    ) -> MergeBuilder:
        """Update a row of the table without a matching source row.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(ClauseKind.NOT_MATCHED_BY_SOURCE, MergeAction.UPDATE, dict(set), condition))

    def when_not_matched_by_source_delete(self, condition: str | Column | None = None) -> MergeBuilder:
        """Delete a row of the table without a matching source row.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(ClauseKind.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE, None, condition))

    def with_clause(self, clause: Clause) -> MergeBuilder:
        """Add a clause after the others.

        Args:
            clause: The clause.

        Returns:
            The MERGE with this clause after the others.

        Raises:
            QueryError: An earlier clause for such rows has no condition, so this one would never apply.
        """
        for before in self.clauses:
            if before.kind is clause.kind and before.condition is None:
                raise QueryError(
                    f"only the last clause for rows {clause.kind.value.lower()} may have no condition: an earlier one "
                    "applies to all of them; add a condition to it"
                )
        return replace(self, clauses=(*self.clauses, clause))

    def execute(self) -> ChangeResult:
        """Run the MERGE, as one commit.

        Returns:
            Numbers of the changed rows.

        Raises:
            QueryError: There are no clauses.
            AmbiguousMergeError: Several source rows match a row of the table that is updated.
            SchemaMismatchError: A column is missing, or a value cannot be converted to the type of its column.
            RecordKeyError: A clause would change the record key of a row, move it to a partition that has a record of
                its key, or insert a row with the key of one that is updated, or is deleted with a greater ordering
                value.
            ConflictError: Other writers changed the rows that were read, in every attempt.
            NonRetryableConflictError: So they did, and the source comes from the table as it was before.
        """
        if not self.clauses:
            raise QueryError("a MERGE requires at least one clause: when_matched_…, when_not_matched_…")
        spark, storage = self.source.sparkSession, open_storage(self.path, self.opts)
        return with_retries(
            storage,
            self.opts,
            lambda: self.execute_pinned(TargetSnapshot.pin(spark, self.path, self.opts)),
            lambda: bool(snapshot_ids(self.source, storage)),
        )

    def execute_pinned(self, pinned: TargetSnapshot) -> ChangeResult:
        """Run the MERGE once, on a snapshot of its table; any later change is a conflict.

        Args:
            pinned: The table.

        Returns:
            Numbers of the changed rows.

        Raises:
            ConflictError: Another writer changed the table.
        """
        upserted = self._upsert(pinned)
        return self._join(read_target(self.source.sparkSession, pinned)) if upserted is None else upserted

    def _join(self, target: TargetTable) -> ChangeResult:
        """Run the MERGE as a join of the source with the table."""
        join = planned_join(self, target)
        with CachedFrames() as cached:
            merged = MergeChanges(join.source.evaluator, join.pairs(cached))
            counts: MergeCounts | None = None
            if not merged.are_counted_by_write and not merged.are_certain:
                counts = count_changes(merged.pairs, self.clauses)
                if counts.inserted and (counts.updated or counts.deleted):
                    pairs = with_replaced_rows(merged.pairs, target, cached, count=counts.pairs)
                    merged = replace(merged, pairs=pairs)
            repeated = counts is not None and counts.repeated_deletes
            rows, changes = merged.rows(cached, repeated=repeated)
            commit = DmlCommit(target.reads, changes, counts_changes=merged.are_counted_by_write)
            done = write_changes(rows, target.keyed, target.opts, Operation.UPSERT, commit)
        counts = counts or MergeCounts.of_write(done)
        return ChangeResult(done, counts.updated + counts.deleted, counts.updated, counts.inserted, counts.deleted)

    def _upsert(self, target: TargetSnapshot) -> ChangeResult | None:
        """Run the MERGE as an upsert; None if that is not equivalent."""
        rows = upserted_rows(self, target)
        if rows is None:
            return None
        # Rows with the same key would be merged, and tasks would have to search for them.
        opts = target.opts.merged({options.COMBINE_BEFORE_UPSERT.key: False})
        by_commit_time = target.merging.mode is MergeMode.COMMIT_TIME_ORDERING
        ordered = target.ordering_of_deletes if target.client.config.populate_meta_fields else frozenset()
        exact = KeyConstraint(
            tuple(key_columns(target)),
            # Writes do not count the rows that lose against the stored one by their ordering values.
            conditional=by_commit_time,
            deletes=by_commit_time or _deletes_win(target) or bool(ordered),
        )
        are_known = ordered.issubset(target.spec.record_fields)
        ordering = None if are_known else partial(target.ordering_values, rows.sparkSession)
        commit = DmlCommit(target.whole_table(), key_constraint=exact, ordering_values=ordering)
        try:
            done = write_changes(rows, target.keyed, opts, Operation.UPSERT, commit)
        except KeyConstraintError:
            return None
        planned = done.planned_changes
        assert planned is not None  # the constraint counts them
        inserted, deleted = done.num_inserts, done.num_deletes
        updated = done.num_updates if by_commit_time else planned.rows - planned.deleted - inserted
        return ChangeResult(done, updated + deleted, updated, inserted, deleted)


def _deletes_win(target: TargetSnapshot) -> bool:
    """Return True if deletes with the key columns alone win against the rows of a table with event time.

    A delete in a log file needs the ordering value of the stored row (`TargetSnapshot.ordering_of_deletes`). In a
    rewritten file it wins if it has no ordering value, or the stored one, but not with a part of it.
    """
    ordering, keys = frozenset(target.merging.ordering_fields), frozenset(key_columns(target))
    is_whole = ordering <= keys or ordering.isdisjoint(keys)
    return is_whole and target.client.config.table_type is TableType.COPY_ON_WRITE


def upserted_rows(merge: MergeBuilder, target: TargetSnapshot) -> DataFrame | None:
    """Return the rows that are upserted if a MERGE is equivalent to an upsert; None if it is a join."""
    names = target.schema.names
    sides = MergeSides.from_columns(merge.alias, names, merge.source.columns, merge.source_alias)
    return rows_to_upsert(merge.source, target, _condition(merge), sides, merge.clauses)


def planned_join(merge: MergeBuilder, target: TargetTable) -> MergeJoin:
    """Return the join of the source with the table that a MERGE executes.

    Raises:
        SchemaMismatchError: A column of the source is missing, or has a reserved name.
    """
    case_sensitive = is_case_sensitive(merge.source.sparkSession)
    evaluator = ClauseEvaluator(merge.clauses, merge.alias, target, case_sensitive, merge.source.columns)
    source = MergeSource(merge.source, _condition(merge), evaluator, merge.source_alias)
    source.check_columns()
    return MergeJoin(source.with_one_moment())


def _condition(merge: MergeBuilder) -> str | Column:
    """Return the condition of a MERGE, as SQL text if it is a Column that only equates columns."""
    return merge.on if isinstance(merge.on, str) else equality_text(str(merge.on)) or merge.on
