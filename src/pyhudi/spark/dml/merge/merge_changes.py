"""Changes of a MERGE: the rows to be written, from the pairs to which its clauses apply, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config.enums import MergeMode
from pyhudi.errors import RecordKeyError
from pyhudi.spark.column_names import quoted, select_names
from pyhudi.spark.dml.merge.clause_evaluation import KIND, ROW_ID, STORED, ClauseEvaluator
from pyhudi.spark.dml.merge.merge_clauses import MergeAction
from pyhudi.spark.dml.merge.merge_pairs import MergePairs
from pyhudi.spark.dml.partition_path_update import PartitionPathUpdate, RowAssignments, split_partition_path_updates
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.write.dml_commit import ColumnAssignments, NewRecords, RowChanges, RowOrigin
from pyhudi.sql.statements import ClauseKind
from pyhudi.write.location_columns import IS_DELETE


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """Changes that the clauses of a MERGE make to pairs of rows.

    Attributes:
        evaluator: The clauses, with the table.
        pairs: The pairs.
    """

    evaluator: ClauseEvaluator
    pairs: MergePairs

    @property
    def _target(self) -> TargetTable:
        return self.evaluator.target

    @property
    def are_certain(self) -> bool:
        """True if the write changes each row of the pairs: they are located, and no stored version wins by its ordering
        value or by a merger."""
        return self._are_located and self._target.merging.mode is MergeMode.COMMIT_TIME_ORDERING

    @property
    def are_counted_by_write(self) -> bool:
        """True if the plan of the write counts the rows that each action changes (`ChangeCounts`)."""
        return self._are_located and self.evaluator.has(ClauseKind.NOT_MATCHED)

    @property
    def _are_located(self) -> bool:
        """True if each row of the pairs is a change of a row at its location or a new record: no two belong to the same
        record, and none moves."""
        new = self.pairs.new_keys or not self.evaluator.has(ClauseKind.NOT_MATCHED)
        stays = not (self.evaluator.moves or self._marks_deletes)
        return self._target.locations is not None and self.pairs.unique and new and stays

    @property
    def _marks_deletes(self) -> bool:
        """True if new values may mark a row as a delete."""
        markers = self._target.delete_markers
        return bool(markers) and (self.evaluator.has(ClauseKind.NOT_MATCHED) or bool(markers & self.evaluator.assigned))

    def rows(self, cached: CachedFrames, *, repeated: bool) -> tuple[DataFrame, RowChanges]:
        """Return the rows to be written, and what is known of them.

        Args:
            cached: Persists DataFrames that are evaluated more than once.
            repeated: Several pairs delete the same row; one of them is kept.

        Raises:
            RecordKeyError: A row would move to a partition that has a record of its key, or rows replace records that
                are deleted, and others are inserted.
        """
        target, evaluator, pairs = self._target, self.evaluator, self.pairs
        deleted = self._is_deleted()
        rows = _each_delete_once(pairs.rows, deleted) if repeated else pairs.rows
        assigned = ColumnAssignments(bool(target.key_columns & evaluator.assigned), evaluator.moves, pairs.unassigned)
        has_deletes = self._marks_deletes or any(clause.action is MergeAction.DELETE for clause in evaluator.clauses)
        if evaluator.moves:
            values = {name: F.col(quoted([name])) for name in target.schema.names}
            stored = {name: F.col(quoted([STORED, name])) for name in target.schema.names}
            # the read set of a MERGE has the partitions that were searched: it reads the whole table
            assignments = RowAssignments(values, deleted, stored, keys_assigned=assigned.record_key)
            moves = split_partition_path_updates(rows, target, assignments, cached, adaptive=repeated)
            new_records = self._moved_and_new_records(moves)
            return moves.rows, RowChanges(target.locations, new_records, assigned, has_deletes, RowOrigin.CACHED)
        rows = select_names(rows.withColumn(IS_DELETE, deleted), [*target.schema.names, *target.helpers, IS_DELETE])
        origin = RowOrigin.QUERY if repeated else RowOrigin.CACHED
        return rows, RowChanges(target.locations, self._new_records(), assigned, has_deletes, origin)

    def _is_deleted(self) -> Column:
        deleted = F.col(KIND) == MergeAction.DELETE.value
        return deleted | is_delete(self._target.schema, self._target.merging) if self._marks_deletes else deleted

    def _new_records(self) -> NewRecords:
        """Return what is known of the new records of a statement that moves no rows."""
        if not self.evaluator.has(ClauseKind.NOT_MATCHED):
            return NewRecords.NONE
        if not self.pairs.new_keys:
            return NewRecords.ANY
        return NewRecords.DISTINCT_NEW_KEYS if self.pairs.unique else NewRecords.NEW_KEYS

    def _moved_and_new_records(self, moves: PartitionPathUpdate) -> NewRecords:
        """Return what is known of the new records of a statement that moves rows.

        Raises:
            RecordKeyError: Rows replace records that are deleted, and other rows are inserted, whose keys would have to
                be looked up among these records.
        """
        if not self.evaluator.has(ClauseKind.NOT_MATCHED):
            return moves.new_records
        if moves.new_records is NewRecords.REPLACING_DELETED:
            raise RecordKeyError(
                "WHEN NOT MATCHED cannot be combined with moves that swap records of one key between partitions; "
                "nothing was written. Insert the new rows by a second MERGE"
            )
        return NewRecords.ANY


def _each_delete_once(rows: DataFrame, deleted: Column) -> DataFrame:
    """Return rows without repeated deletes of the same row of the table."""
    repeats = deleted & F.col(ROW_ID).isNotNull()
    once = rows.where(repeats).dropDuplicates([ROW_ID])
    return rows.where(~repeats).unionByName(once)
