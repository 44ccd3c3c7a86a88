"""Plan of a MERGE: the pairs of rows to which its clauses apply, and the resulting rows.

If the condition only equates columns, the source is joined with the table by an inner join, so that Spark can broadcast
a small source and need not shuffle the table. Source rows without a match are determined afterwards, as those whose
values of these columns are in no pair. Other conditions, and clauses for rows without a matching source row, require an
outer join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import MergeMode
from pyhudi.errors import RecordKeyError, SchemaMismatchError
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.dml.assignments import as_column, check_types, resolved
from pyhudi.spark.dml.merge_as_upsert import has_plain_keys
from pyhudi.spark.dml.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.partition_moves import PartitionMoves, RowAssignments, split_partition_moves
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.lookup.key_constraint import are_equal_as_key_text, summarize_keys
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dml_commit import RowChanges
from pyhudi.sql.join_conditions import MergeSides, equalities, equated_columns
from pyhudi.sql.statements import ClauseKind
from pyhudi.write.location_columns import DELETE

ROW_ID = "_pyhudi_row_id"
"""Number of a row of the table; null for new records."""
KIND = "_pyhudi_kind"
"""Value of `MergeAction`."""
_IN_TARGET, _IN_SOURCE = "_pyhudi_in_target", "_pyhudi_in_source"
_CLAUSE, _STORED, _NEW = "_pyhudi_clause", "_pyhudi_stored", "_pyhudi_new_"
_COPY, _EQUATED, _MATCHED = "_pyhudi_copy_of_", "_pyhudi_equated_", "_pyhudi_matched_"


@dataclass(frozen=True, slots=True)
class MatchedClauses:
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

    def _has_clause(self, kind: ClauseKind) -> bool:
        return any(clause.kind is kind for clause in self.clauses)

    @property
    def _is_case_sensitive(self) -> bool:
        return is_case_sensitive(self.source.sparkSession)

    def _folded(self, name: str) -> str:
        return name if self._is_case_sensitive else name.lower()

    # --- the source --------------------------------------------------------------------------------------------------

    def check_columns(self) -> None:
        """Check the names of the source's columns.

        Raises:
            SchemaMismatchError: A column is missing, or has a reserved name.
        """
        clash = sorted(name for name in self.source.columns if name.startswith("_pyhudi_"))
        if clash:
            raise SchemaMismatchError(f"the source's column name {clash[0]!r} is reserved; rename the column")
        self._copied()

    def _copied(self) -> list[str]:
        """Return the columns of the source that are copied by name."""
        if all(clause.values is not None or clause.action is MergeAction.DELETE for clause in self.clauses):
            return []
        names = [name for name in self.source.columns if not is_meta_column(name)]
        known = {self._folded(name) for name in names}
        missing = [name for name in self.target.schema.names if self._folded(name) not in known]
        if missing:
            raise SchemaMismatchError(
                f"the source lacks the column {missing[0]!r}, which updating or inserting all columns needs; its "
                f"columns are {', '.join(names)}"
            )
        own = {self._folded(name) for name in self.target.schema.names}
        return [name for name in names if self._folded(name) in own]

    def _copy(self, name: str) -> str:
        return _COPY + self._folded(name)

    def _marked(self) -> DataFrame:
        copies = [F.col(quoted([name])).alias(self._copy(name)) for name in self._copied()]
        equated = [F.col(quoted([name])).alias(_EQUATED + name) for name in self._equated()]
        return self.source.select("*", *copies, *equated, F.lit(True).alias(_IN_SOURCE))

    @property
    def _sides(self) -> MergeSides:
        return MergeSides.of(self.alias, self.target.schema.names, self.source.columns, self.source_alias)

    def _equated(self) -> list[str]:
        """Return the columns of the source that the condition equates with columns of the table, if it does nothing
        else."""
        found = equalities(self.on, self._sides) if isinstance(self.on, str) else None
        wanted = {other for _, other in found or ()}
        names = [name for name in self.source.columns if name.lower() in wanted]
        return names if len(names) == len(wanted) else []

    def _counted(self, rows: DataFrame) -> _SourceRows:
        """Count the rows of the source, which are cached. Runs a Spark job. Spark then knows their size, and can decide
        whether to broadcast them."""
        names = self._equated()
        with task_errors():
            found = summarize_keys(rows, names).first()
        assert found is not None
        count, most, odd = found
        pairs = self._equated_types()
        # If types differ, Spark casts: two strings may equal the same number.
        unique = (most or 0) <= 1 and all(own == other for own, other in pairs)
        return _SourceRows(count or 0, unique, exact=not odd and are_equal_as_key_text(pairs))

    def _equated_types(self) -> list[tuple[T.DataType | None, T.DataType | None]]:
        """Return the types of the equated columns, in the table and in the source."""
        assert isinstance(self.on, str)
        own, other = (
            {field.name.lower(): field.dataType for field in schema.fields}
            for schema in (self.target.schema, self.source.schema)
        )
        return [(own.get(name), other.get(source)) for name, source in equalities(self.on, self._sides) or ()]

    # --- pairs -------------------------------------------------------------------------------------------------------

    def matched_clauses(self, cached: CachedFrames) -> MatchedClauses:
        """Return the pairs to which a clause applies. Runs Spark jobs."""
        rows = self.target.rows.select(
            "*", F.monotonically_increasing_id().alias(ROW_ID), F.lit(True).alias(_IN_TARGET)
        ).alias(self.alias)
        if self._has_clause(ClauseKind.NOT_MATCHED_BY_SOURCE) or not self._equated():
            joined = rows.join(self._marked(), as_column(self.on), self._join_type())
            unassigned = self._unassigned(new_keys=False)
            taken = self._evaluated(joined, tuple(ClauseKind), unassigned).where(F.col(_CLAUSE).isNotNull())
            return MatchedClauses(cached.add(taken), unassigned=unassigned)
        source = cached.add(self._marked())
        found = self._counted(source)  # Before Spark plans a join of the source with cached rows.
        new_keys = found.exact and self._inserts_by_key()
        unassigned = self._unassigned(new_keys=new_keys)
        pairs = rows.join(source, as_column(self.on))
        parts = []
        if self._has_clause(ClauseKind.MATCHED):
            pairs = cached.add(self._evaluated(pairs, (ClauseKind.MATCHED,), unassigned))
            parts.append(pairs)
        if self._has_clause(ClauseKind.NOT_MATCHED):
            others = self._unmatched(source, pairs, found.count)
            # With the columns of the table, which are null.
            others = rows.limit(0).join(others, F.lit(False), "right")
            parts.append(cached.add(self._evaluated(others, (ClauseKind.NOT_MATCHED,), unassigned)))
        taken = reduce(lambda some, more: some.unionByName(more), parts).where(F.col(_CLAUSE).isNotNull())
        return MatchedClauses(taken, found.unique, new_keys, unassigned)

    def _join_type(self) -> str:
        """Return the type of the join of table and source that keeps all rows to which clauses apply."""
        if self._has_clause(ClauseKind.NOT_MATCHED_BY_SOURCE):
            return "full" if self._has_clause(ClauseKind.NOT_MATCHED) else "left"
        return "right" if self._has_clause(ClauseKind.NOT_MATCHED) else "inner"

    def _unmatched(self, source: DataFrame, pairs: DataFrame, count: int) -> DataFrame:
        """Return the source rows that are in no pair; ``count`` is the number of all source rows.

        Rows are compared by value, because row numbers could change if Spark recomputed evicted rows of a cache.
        """
        names = self._equated()
        values = (F.col(quoted([_EQUATED + name])).alias(_MATCHED + name) for name in names)
        matched = pairs.select(*values).distinct()
        if count <= self.target.opts.get_typed(options.INDEX_BROADCAST_ROWS):
            matched = F.broadcast(matched)
        same = [F.col(quoted([_EQUATED + name])) == F.col(quoted([_MATCHED + name])) for name in names]
        return source.join(matched, same, "left_anti")

    def _evaluated(self, joined: DataFrame, kinds: Sequence[ClauseKind], unassigned: frozenset[str]) -> DataFrame:
        """Evaluate the clauses for some kinds of rows: the number of the clause that applies to a pair (null: none),
        and the resulting row, of which updates have no values of ``unassigned`` columns.

        In clauses for source rows without a match, an unqualified name is a column of the source; those of the table
        are null.
        """
        stored = [kind for kind in kinds if kind is not ClauseKind.NOT_MATCHED]
        numbered = joined.withColumn(_CLAUSE, self._clause_number(stored))
        updated = numbered.withColumns(self._updated(numbered, stored, unassigned)).drop(*self._own.values())
        if ClauseKind.NOT_MATCHED in kinds:
            if self._folded(self.alias) not in {self._folded(name) for name in self.source.columns}:
                updated = updated.withColumn(self.alias, self._absent())
            number = F.coalesce(F.col(_CLAUSE), self._clause_number([ClauseKind.NOT_MATCHED]))
            updated = updated.withColumn(_CLAUSE, number)
        return updated.select(*self._columns(updated, kinds))

    @property
    def _own(self) -> dict[str, Column]:
        """Return the columns of the table in the joined rows."""
        return {name: F.col(quoted([self.alias, name])) for name in self.target.schema.names}

    def _absent(self) -> Column:
        """Return a row of nulls for source rows without a match, as a struct, so that its columns can be qualified."""
        fields = self.target.schema.fields
        return F.struct(*(F.lit(None).cast(field.dataType).alias(field.name) for field in fields))

    def _numbered(self, kinds: Sequence[ClauseKind]) -> list[tuple[int, Clause]]:
        return [(number, clause) for number, clause in enumerate(self.clauses) if clause.kind in kinds]

    def _clause_number(self, kinds: Sequence[ClauseKind]) -> Column:
        found = F.lit(None).cast("int")
        for number, clause in reversed(self._numbered(kinds)):
            in_target, in_source = F.col(_IN_TARGET).isNotNull(), F.col(_IN_SOURCE).isNotNull()
            fits = {
                ClauseKind.MATCHED: in_target & in_source,
                ClauseKind.NOT_MATCHED: ~in_target & in_source,
                ClauseKind.NOT_MATCHED_BY_SOURCE: in_target & ~in_source,
            }[clause.kind]
            if clause.condition is not None:
                fits &= F.coalesce(as_column(clause.condition), F.lit(False))
            found = F.when(fits, F.lit(number)).otherwise(found)
        return found

    def _updated(self, joined: DataFrame, kinds: Sequence[ClauseKind], unassigned: frozenset[str]) -> dict[str, Column]:
        """Return the values of the table's columns after the updates, null for unassigned ones, and, if rows may move,
        those before."""
        kept = {name: self._own[name] for name in self.target.schema.names}
        kept |= self.target.absent(unassigned)
        found = {_NEW + name: value for name, value in self._assign(kinds, joined, kept).items()}
        if self.moves:
            found[_STORED] = F.struct(*(value.alias(name) for name, value in self._own.items()))
        return found

    def _assign(self, kinds: Sequence[ClauseKind], rows: DataFrame, before: dict[str, Column]) -> dict[str, Column]:
        """Return the values of the table's columns after clauses for some kinds of rows."""
        found = dict(before)
        for number, clause in self._numbered(kinds):
            for name, value in self._values(clause, rows).items():
                found[name] = F.when(F.col(_CLAUSE) == number, value).otherwise(found[name])
        return found

    def _columns(self, updated: DataFrame, kinds: Sequence[ClauseKind]) -> list[Column]:
        """Return the columns of the result: new values, helper columns, and, if rows may move, stored values."""
        target, numbered = self.target, self._numbered(kinds)
        values = {name: F.col(quoted([_NEW + name])) for name in target.schema.names}
        if ClauseKind.NOT_MATCHED in kinds:
            values = self._assign([ClauseKind.NOT_MATCHED], updated, values)
        columns = [value.alias(name) for name, value in values.items()]
        if self.moves:
            columns.append(F.col(_STORED))
        kind = reduce(
            lambda found, pair: F.when(F.col(_CLAUSE) == pair[0], F.lit(pair[1].action.value)).otherwise(found),
            numbered[1:],
            F.lit(numbered[0][1].action.value),
        )
        equated = [_EQUATED + name for name in self._equated()]
        helpers = (F.col(quoted([name])) for name in (*target.helpers, ROW_ID, *equated, _CLAUSE))
        return [*columns, *helpers, kind.alias(KIND)]

    def _values(self, clause: Clause, joined: DataFrame) -> dict[str, Column]:
        """Return the assignments of a clause, converted to the types of the table's columns."""
        target = self.target
        if clause.action is MergeAction.DELETE:
            return {}
        if clause.values is None:
            given = [(name, F.col(quoted([self._copy(name)]))) for name in target.schema.names]
            return check_types(joined, given, target.schema)
        named = self._named(clause)
        values = check_types(joined, ((name, as_column(value)) for name, value in named.items()), target.schema)
        if clause.action is MergeAction.INSERT:
            kinds = {field.name: field.dataType for field in target.schema.fields}
            return {name: values.get(name, F.lit(None).cast(kinds[name])) for name in target.schema.names}
        return values

    def _named(self, clause: Clause) -> dict[str, object]:
        return resolved(
            clause.values or {},
            self.target.schema,
            case_sensitive=self._is_case_sensitive,
            alias=self.alias,
            inserts=clause.action is MergeAction.INSERT,
        )

    # --- changes -----------------------------------------------------------------------------------------------------

    def _assigned(self) -> frozenset[str]:
        """Columns that are assigned by an update."""
        updates = [clause for clause in self.clauses if clause.action is MergeAction.UPDATE]
        if any(clause.values is None for clause in updates):
            return frozenset(self.target.schema.names)
        return frozenset(name for clause in updates for name in self._named(clause))

    def _unassigned(self, *, new_keys: bool) -> frozenset[str]:
        """Return the columns that updates may omit.

        There are none if a source row without a match may have a key that the table has, because it is then an update
        of all columns. Otherwise new records still need the columns of their keys (``new_keys``).
        """
        inserts = self._has_clause(ClauseKind.NOT_MATCHED)
        if self.moves or (inserts and not new_keys):
            return frozenset()
        found = self.target.unassigned(self._assigned())
        return found - self.target.placing_columns if inserts else found

    @property
    def moves(self) -> bool:
        """True if an update may move a row to another partition."""
        return bool(self.target.partition_columns & self._assigned())

    def _inserts_by_key(self) -> bool:
        """Return True if source rows without a match were matched by the key with which they are inserted."""
        target = self.target
        if not has_plain_keys(target.spec):
            return False
        inserts = [clause for clause in self.clauses if clause.action is MergeAction.INSERT]
        if not isinstance(self.on, str) or self.moves or any(clause.values is not None for clause in inserts):
            return False
        found = equated_columns(self.on, self._sides)
        keys = frozenset(name.lower() for name in target.spec.record_fields)
        is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
        partitions = frozenset() if is_global else frozenset(name.lower() for name in target.partition_columns)
        return found is not None and keys <= found <= keys | partitions

    def is_certain(self, taken: MatchedClauses) -> bool:
        """Return True if the write changes each row of the pairs: no two belong to the same record, none moves, and no
        stored version wins by its ordering value or by a merger."""
        new = taken.new_keys or not self._has_clause(ClauseKind.NOT_MATCHED)
        by_time = self.target.merging.mode is MergeMode.COMMIT_TIME_ORDERING
        return self.target.located and taken.unique and new and by_time and not (self.moves or self._marks_deletes)

    def _with_moves(self, changes: RowChanges, moves: PartitionMoves) -> RowChanges:
        """Add what is known of the keys of rows that move.

        Raises:
            RecordKeyError: Rows take the places of records that go away, and others are inserted, whose keys have to be
                looked up among these records.
        """
        if not self._has_clause(ClauseKind.NOT_MATCHED):
            known = bool(moves.searched)
            return replace(changes, new_keys=known, distinct_keys=known, takes_places=moves.takes_places)
        if moves.takes_places:
            raise RecordKeyError(
                "a row moves to a partition from which a record of its key goes away in the same MERGE, which is only "
                "possible without WHEN NOT MATCHED; nothing was written. Insert the new rows by a second MERGE"
            )
        return changes

    @property
    def _marks_deletes(self) -> bool:
        """True if new values may mark a row as a delete."""
        return bool(self.target.delete_markers) and (
            self._has_clause(ClauseKind.NOT_MATCHED) or bool(self.target.delete_markers & self._assigned())
        )

    def changes(self, taken: MatchedClauses, cached: CachedFrames, *, repeated: bool) -> tuple[DataFrame, RowChanges]:
        """Return the rows to be written. ``repeated``: several pairs delete the same row; one of them is kept."""
        target, rows = self.target, taken.rows
        deleted = F.col(KIND) == MergeAction.DELETE.value
        if self._marks_deletes:
            deleted |= is_delete(target.schema, target.merging)
        found = RowChanges(
            target.located,
            keys_assigned=bool(target.key_columns & self._assigned()),
            partition_assigned=self.moves,
            new_keys=taken.new_keys,
            distinct_keys=taken.new_keys and taken.unique,
            adds=self.moves or self._has_clause(ClauseKind.NOT_MATCHED),
            bases=target.bases,
            cached=not self.moves and not repeated,
            deletes=self._marks_deletes or any(clause.action is MergeAction.DELETE for clause in self.clauses),
            unassigned=taken.unassigned,
        )
        own = {name: F.col(quoted([name])) for name in target.schema.names}
        if repeated:
            repeats = deleted & F.col(ROW_ID).isNotNull()
            once = rows.where(repeats).dropDuplicates([ROW_ID])
            rows = rows.where(~repeats).unionByName(once)
        if self.moves:
            stored = {name: F.col(quoted([_STORED, name])) for name in target.schema.names}
            # the read set of a MERGE has the partitions that were searched: it reads the whole table
            compared = found.keys_assigned
            assignments = RowAssignments(own, deleted, stored, keys_assigned=compared)
            moves = split_partition_moves(rows, target, assignments, cached)
            return moves.rows, self._with_moves(found, moves)
        return rows.select(*own.values(), *target.helpers, deleted.alias(DELETE)), found
