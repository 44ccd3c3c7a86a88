"""Plan of a MERGE: the pairs of rows to which its clauses apply, and the resulting rows.

If the condition only equates columns, the source is joined with the table by an inner join, so that Spark can broadcast
a small source and need not shuffle the table. Source rows without a match are determined afterwards, as those whose
values of these columns are in no pair. Other conditions, and clauses for rows without a matching source row, require an
outer join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import MergeMode
from pyhudi.errors import RecordKeyError, SchemaMismatchError
from pyhudi.schema.meta_columns import is_meta_column, is_reserved
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments import as_column
from pyhudi.spark.dml.clause_evaluation import (
    CLAUSE,
    EQUATED,
    IN_SOURCE,
    IN_TARGET,
    KIND,
    ROW_ID,
    STORED,
    ClauseEvaluator,
)
from pyhudi.spark.dml.merge_as_upsert import has_plain_keys
from pyhudi.spark.dml.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.partition_path_update import PartitionPathUpdate, RowAssignments, split_partition_path_updates
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.slice_tasks import coalesced
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.lookup.key_constraint import are_equal_as_key_text, summarize_keys
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dml_commit import ColumnAssignments, NewRecords, RowChanges, RowOrigin
from pyhudi.sql.conditions.merge_condition import MergeSides, equalities, equated_columns
from pyhudi.sql.moment_functions import MOMENTS, with_moment_columns
from pyhudi.sql.statements import ClauseKind
from pyhudi.write.location_columns import IS_DELETE

_MATCHED = "_pyhudi_matched_"
_MOMENT = "_pyhudi_moment_"
_FEW_ROWS = 100_000
"""Number of source rows up to which Spark's plan of the join is not made adaptive."""


@dataclass(frozen=True, slots=True)
class MergePairs:
    """Pairs of rows to which a clause applies: new and stored values, locations, and the number of the clause.

    ``unique``: no row of the table is in two pairs. ``new_keys``: source rows without a match have keys that the table
    does not have. ``unassigned``: columns of which updates have no values (`TargetTable.unassigned`).
    """

    rows: DataFrame
    unique: bool = False
    new_keys: bool = False
    unassigned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _SourceRows:
    """Properties of a source. ``unique``: no two rows match the same row of the table. ``exact``: values of the columns
    that the condition equates are equal if and only if their key texts are."""

    count: int
    unique: bool
    exact: bool


@dataclass(frozen=True, slots=True)
class MergePlan:
    """One attempt at a MERGE."""

    clauses: Sequence[Clause]
    alias: str
    source: DataFrame
    on: str | Column
    target: TargetTable
    source_alias: str | None = None

    @property
    def _evaluator(self) -> ClauseEvaluator:
        case_sensitive = is_case_sensitive(self.source.sparkSession)
        return ClauseEvaluator(self.clauses, self.alias, self.target, case_sensitive, self.source.columns)

    # --- the source --------------------------------------------------------------------------------------------------

    def with_one_moment(self) -> MergePlan:
        """Return the plan with the time of the statement (``current_timestamp()``) as a column of its source, if rows
        with a match and those without one are evaluated one after the other, each at a time of its own."""
        evaluator = self._evaluator
        apart = evaluator.has(ClauseKind.MATCHED) and evaluator.has(ClauseKind.NOT_MATCHED)
        if not apart or evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE) or not self._equated():
            return self
        columns = {function: f"{_MOMENT}{n}" for n, function in enumerate(dict.fromkeys(MOMENTS.values()))}
        names = {name.lower() for name in (*self.target.schema.names, *self.source.columns)}
        changed = partial(with_moment_columns, columns=columns, names=names)
        clauses = tuple(clause.with_texts(changed) for clause in self.clauses)
        if clauses == tuple(self.clauses):
            return self
        moments = (F.expr(function).alias(name) for function, name in columns.items())
        return replace(self, clauses=clauses, source=self.source.select("*", *moments))

    def check_columns(self) -> None:
        """Check the names of the source's columns.

        Raises:
            SchemaMismatchError: A column is missing, or has a reserved name.
        """
        clash = sorted(filter(is_reserved, self.source.columns))
        if clash:
            raise SchemaMismatchError(f"the source's column name {clash[0]!r} is reserved; rename the column")
        self._copied()

    def _copied(self) -> list[str]:
        """Return the columns of the source that are copied by name."""
        if all(clause.values is not None or clause.action is MergeAction.DELETE for clause in self.clauses):
            return []
        folded = self._evaluator.folded
        names = [name for name in self.source.columns if not is_meta_column(name)]
        available = {folded(name) for name in names}
        missing = [name for name in self.target.schema.names if folded(name) not in available]
        if missing:
            raise SchemaMismatchError(
                f"the source lacks the column {missing[0]!r}, which updating or inserting all columns needs; its "
                f"columns are {', '.join(names)}"
            )
        table_columns = {folded(name) for name in self.target.schema.names}
        return [name for name in names if folded(name) in table_columns]

    def _marked(self) -> DataFrame:
        copy_name = self._evaluator.copy_name
        copies = [F.col(quoted([name])).alias(copy_name(name)) for name in self._copied()]
        equated = [F.col(quoted([name])).alias(EQUATED + name) for name in self._equated()]
        return self.source.select("*", *copies, *equated, F.lit(True).alias(IN_SOURCE))

    @property
    def _sides(self) -> MergeSides:
        return MergeSides.from_columns(self.alias, self.target.schema.names, self.source.columns, self.source_alias)

    def _equated(self) -> list[str]:
        """Return the columns of the source that the condition equates with columns of the table, if it does nothing
        else."""
        pairs = equalities(self.on, self._sides) if isinstance(self.on, str) else None
        source_names = {other for _, other in pairs or ()}
        names = [name for name in self.source.columns if name.lower() in source_names]
        return names if len(names) == len(source_names) else []

    def _counted(self, rows: DataFrame) -> _SourceRows:
        """Count the rows of the source, which are cached. Runs a Spark job. Spark then knows their size, and can decide
        whether to broadcast them."""
        names = self._equated()
        with task_errors():
            summary = summarize_keys(rows, names).first()
        assert summary is not None
        count, most, odd = summary
        pairs = self._equated_types()
        # If types differ, Spark casts: two strings may equal the same number.
        unique = (most or 0) <= 1 and all(table_type == source_type for table_type, source_type in pairs)
        return _SourceRows(count or 0, unique, exact=not odd and are_equal_as_key_text(pairs))

    def _equated_types(self) -> list[tuple[T.DataType | None, T.DataType | None]]:
        """Return the types of the equated columns, in the table and in the source."""
        assert isinstance(self.on, str)
        table_types, source_types = (
            {field.name.lower(): field.dataType for field in schema.fields}
            for schema in (self.target.schema, self.source.schema)
        )
        return [
            (table_types.get(name), source_types.get(source)) for name, source in equalities(self.on, self._sides) or ()
        ]

    # --- pairs -------------------------------------------------------------------------------------------------------

    def evaluated_pairs(self, cached: CachedFrames) -> MergePairs:
        """Return the pairs to which a clause applies. Runs Spark jobs."""
        evaluator, equated = self._evaluator, self._equated()
        rows = self.target.rows.select(
            "*", F.monotonically_increasing_id().alias(ROW_ID), F.lit(True).alias(IN_TARGET)
        ).alias(self.alias)
        if evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE) or not equated:
            joined = rows.join(self._marked(), as_column(self.on), self._join_type())
            unassigned = self._unassigned(new_keys=False)
            matched = evaluator.evaluate(joined, tuple(ClauseKind), unassigned, equated).where(
                F.col(CLAUSE).isNotNull()
            )
            return MergePairs(cached.add(matched), unassigned=unassigned)
        source = cached.add(self._marked())
        source_rows = self._counted(source)  # Before Spark plans a join of the source with cached rows.
        new_keys = source_rows.exact and self._inserts_by_key()
        unassigned = self._unassigned(new_keys=new_keys)
        pairs = rows.join(source, as_column(self.on))
        adaptive = source_rows.count > _FEW_ROWS  # Spark knows its size, and broadcasts it unless rows are wide.
        parts = []
        if evaluator.has(ClauseKind.MATCHED):
            pairs = evaluator.evaluate(pairs, (ClauseKind.MATCHED,), unassigned, equated)
            pairs = cached.add(pairs, adaptive=adaptive)
            parts.append(pairs)
        if evaluator.has(ClauseKind.NOT_MATCHED):
            others = self._unmatched(source, pairs, source_rows)
            # With the columns of the table, which are null.
            others = rows.limit(0).join(others, F.lit(False), "right")
            others = evaluator.evaluate(others, (ClauseKind.NOT_MATCHED,), unassigned, equated)
            parts.append(cached.add(others, adaptive=adaptive))
        matched = reduce(lambda some, more: some.unionByName(more), parts).where(F.col(CLAUSE).isNotNull())
        return MergePairs(matched, source_rows.unique, new_keys, unassigned)

    def describe_join(self) -> str:
        """Describe in a line how rows of the table and of the source are matched."""
        evaluator = self._evaluator
        if evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE) or not self._equated():
            return f"{self._join_type()} join of the table with the source on {self.on}"
        searched = ", then a search for source rows without a match" if evaluator.has(ClauseKind.NOT_MATCHED) else ""
        return f"inner join of the table with the source on {self.on}{searched}"

    def _join_type(self) -> str:
        """Return the type of the join of table and source that keeps all rows to which clauses apply."""
        evaluator = self._evaluator
        if evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE):
            return "full" if evaluator.has(ClauseKind.NOT_MATCHED) else "left"
        return "right" if evaluator.has(ClauseKind.NOT_MATCHED) else "inner"

    def _unmatched(self, source: DataFrame, pairs: DataFrame, source_rows: _SourceRows) -> DataFrame:
        """Return the source rows that are in no pair.

        Rows are compared by value, because row numbers could change if Spark recomputed evicted rows of a cache.
        """
        names = self._equated()
        values = (F.col(quoted([EQUATED + name])).alias(_MATCHED + name) for name in names)
        matched = pairs.select(*values)
        if not (source_rows.unique and self._matches_one_record()):
            # there may be many more pairs than source rows, too many to broadcast
            matched = matched.distinct()
            matched = coalesced(matched) if source_rows.count <= _FEW_ROWS else matched
        if source_rows.count <= self.target.opts.get_typed(options.INDEX_BROADCAST_ROWS):
            matched = F.broadcast(matched)
        same = [F.col(quoted([EQUATED + name])) == F.col(quoted([_MATCHED + name])) for name in names]
        return source.join(matched, same, "left_anti")

    def _matches_one_record(self) -> bool:
        """Return True if the condition equates all columns that identify a record, so that a source row matches at most
        one."""
        assert isinstance(self.on, str)
        keys, partitions = self._identifying_columns()
        return bool(keys) and keys | partitions <= (equated_columns(self.on, self._sides) or frozenset())

    def _identifying_columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the lower-case names of the columns that identify a record: those of the record key, and those of the
        partition (none with a global index)."""
        target = self.target
        is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
        partitions = () if is_global else target.partition_columns
        return frozenset(map(str.lower, target.spec.record_fields)), frozenset(map(str.lower, partitions))

    # --- changes -----------------------------------------------------------------------------------------------------

    def _unassigned(self, *, new_keys: bool) -> frozenset[str]:
        """Return the columns that updates may omit.

        There are none if a source row without a match may have a key that the table has, because it is then an update
        of all columns. Otherwise new records still need the columns of their keys (``new_keys``).
        """
        inserts = self._evaluator.has(ClauseKind.NOT_MATCHED)
        if self._evaluator.moves or (inserts and not new_keys):
            return frozenset()
        unassigned = self.target.unassigned(self._evaluator.assigned)
        return unassigned - self.target.placing_columns if inserts else unassigned

    def _inserts_by_key(self) -> bool:
        """Return True if source rows without a match were matched by the key with which they are inserted."""
        target = self.target
        if not has_plain_keys(target.spec):
            return False
        inserts = [clause for clause in self.clauses if clause.action is MergeAction.INSERT]
        if (
            not isinstance(self.on, str)
            or self._evaluator.moves
            or any(clause.values is not None for clause in inserts)
        ):
            return False
        equated = equated_columns(self.on, self._sides)
        keys, partitions = self._identifying_columns()
        return equated is not None and keys <= equated <= keys | partitions

    def is_certain(self, pairs: MergePairs) -> bool:
        """Return True if the write changes each row of the pairs: they are located, and no stored version wins by its
        ordering value or by a merger."""
        return self._are_located(pairs) and self.target.merging.mode is MergeMode.COMMIT_TIME_ORDERING

    def are_counted_by_write(self, pairs: MergePairs) -> bool:
        """Return True if the plan of the write counts the rows that each action changes (`ChangeCounts`)."""
        return self._are_located(pairs) and self._evaluator.has(ClauseKind.NOT_MATCHED)

    def _are_located(self, pairs: MergePairs) -> bool:
        """Return True if each row of the pairs is a change of a row at its location or a new record: no two belong to
        the same record, and none moves."""
        evaluator = self._evaluator
        new = pairs.new_keys or not evaluator.has(ClauseKind.NOT_MATCHED)
        stays = not (evaluator.moves or self._marks_deletes)
        return self.target.locations is not None and pairs.unique and new and stays

    def _new_records(self, pairs: MergePairs) -> NewRecords:
        """Return what is known of the new records of a statement that moves no rows."""
        if not self._evaluator.has(ClauseKind.NOT_MATCHED):
            return NewRecords.NONE
        if not pairs.new_keys:
            return NewRecords.ANY
        return NewRecords.DISTINCT_NEW_KEYS if pairs.unique else NewRecords.NEW_KEYS

    def _moved_and_new_records(self, moves: PartitionPathUpdate) -> NewRecords:
        """Return what is known of the new records of a statement that moves rows.

        Raises:
            RecordKeyError: Rows replace records that are deleted, and other rows are inserted, whose keys would have to
                be looked up among these records.
        """
        if not self._evaluator.has(ClauseKind.NOT_MATCHED):
            return moves.new_records
        if moves.new_records is NewRecords.REPLACING_DELETED:
            raise RecordKeyError(
                "WHEN NOT MATCHED cannot be combined with moves that swap records of one key between partitions; "
                "nothing was written. Insert the new rows by a second MERGE"
            )
        return NewRecords.ANY

    @property
    def _marks_deletes(self) -> bool:
        """True if new values may mark a row as a delete."""
        return bool(self.target.delete_markers) and (
            self._evaluator.has(ClauseKind.NOT_MATCHED) or bool(self.target.delete_markers & self._evaluator.assigned)
        )

    def changes(self, pairs: MergePairs, cached: CachedFrames, *, repeated: bool) -> tuple[DataFrame, RowChanges]:
        """Return the rows to be written. ``repeated``: several pairs delete the same row; one of them is kept."""
        target, rows, evaluator = self.target, pairs.rows, self._evaluator
        deleted = F.col(KIND) == MergeAction.DELETE.value
        if self._marks_deletes:
            deleted |= is_delete(target.schema, target.merging)
        assigned = ColumnAssignments(bool(target.key_columns & evaluator.assigned), evaluator.moves, pairs.unassigned)
        deletes = self._marks_deletes or any(clause.action is MergeAction.DELETE for clause in self.clauses)
        values = {name: F.col(quoted([name])) for name in target.schema.names}
        if repeated:
            repeats = deleted & F.col(ROW_ID).isNotNull()
            once = rows.where(repeats).dropDuplicates([ROW_ID])
            rows = rows.where(~repeats).unionByName(once)
        if evaluator.moves:
            stored = {name: F.col(quoted([STORED, name])) for name in target.schema.names}
            # the read set of a MERGE has the partitions that were searched: it reads the whole table
            assignments = RowAssignments(values, deleted, stored, keys_assigned=assigned.record_key)
            moves = split_partition_path_updates(rows, target, assignments, cached)
            return moves.rows, RowChanges(target.locations, self._moved_and_new_records(moves), assigned, deletes)
        rows = rows.select(*values.values(), *target.helpers, deleted.alias(IS_DELETE))
        origin = RowOrigin.QUERY if repeated else RowOrigin.CACHED
        return rows, RowChanges(target.locations, self._new_records(pairs), assigned, deletes, origin)
