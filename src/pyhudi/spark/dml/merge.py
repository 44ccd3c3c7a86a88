"""MERGE: a source decides which rows of the table are updated, deleted or inserted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import AmbiguousMergeError, QueryError, SchemaMismatchError
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.dml.assignments import as_column, check_types, resolved
from pyhudi.spark.dml.attempts import with_retries
from pyhudi.spark.dml.merge_as_upsert import distinct_rows, joins_by_key
from pyhudi.spark.dml.moves import moved_apart
from pyhudi.spark.dml.target import Target
from pyhudi.spark.dml.update import is_case_sensitive
from pyhudi.spark.execution.cached_frames import Cached
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.row_changes import STORED_KEY
from pyhudi.spark.write.write_job import RowChanges
from pyhudi.sql.join_conditions import equated_columns
from pyhudi.write.location_columns import DELETE
from pyhudi.write.write_result import ChangeResult

_IN_TARGET, _IN_SOURCE = "_pyhudi_in_target", "_pyhudi_in_source"
_ROW_ID, _CLAUSE, _SOURCE = "_pyhudi_row_id", "_pyhudi_clause", "_pyhudi_source_"
_UPDATE, _DELETE, _INSERT = 0, 1, 2
_KIND, _STORED = "_pyhudi_kind", "_pyhudi_stored"


class When(Enum):
    """Kind of rows that a clause is for."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Do(Enum):
    """Action of a clause on a row."""

    UPDATE = _UPDATE
    DELETE = _DELETE
    INSERT = _INSERT


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a MERGE.

    Args:
        when: Which rows it is for.
        do: What it does with them.
        values: New values by column, SQL texts or Columns; None: those of the source's columns of the same names.
        condition: Which of the rows it takes; None: all.
    """

    when: When
    do: Do
    values: Mapping[str, object] | None = None
    condition: str | Column | None = None


@dataclass(frozen=True, slots=True)
class MergeBuilder:
    """A MERGE in the making, as in Delta Lake: clauses are tried in their order, and the first that fits a row is done
    with it. Immutable; `execute` runs it."""

    path: str
    opts: Options
    alias: str
    source: DataFrame
    on: str | Column
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, set: Mapping[str, object], condition: str | Column | None = None) -> MergeBuilder:
        """Update a row that matches a source row.

        Args:
            set: New values by column of the table, as SQL texts or Columns of both sides.
            condition: Take only pairs of rows that meet it, SQL text or a Column; None for all.

        Returns:
            A MERGE with this clause behind the others.

        Raises:
            QueryError: An earlier clause for such rows has no condition, so that none is left for this one.
        """
        return self.with_clause(Clause(When.MATCHED, Do.UPDATE, dict(set), condition))

    def when_matched_update_all(self, condition: str | Column | None = None) -> MergeBuilder:
        """Update all columns of a row that matches, from the source's columns of the same names.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(When.MATCHED, Do.UPDATE, None, condition))

    def when_matched_delete(self, condition: str | Column | None = None) -> MergeBuilder:
        """Delete a row that matches.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(When.MATCHED, Do.DELETE, None, condition))

    def when_not_matched_insert(
        self, values: Mapping[str, object], condition: str | Column | None = None
    ) -> MergeBuilder:
        """Insert a source row that matches nothing; columns of the table without a value get null.

        ``values``: values by column of the table. Condition, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(When.NOT_MATCHED, Do.INSERT, dict(values), condition))

    def when_not_matched_insert_all(self, condition: str | Column | None = None) -> MergeBuilder:
        """Insert a source row that matches nothing, its columns by name.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(When.NOT_MATCHED, Do.INSERT, None, condition))

    def when_not_matched_by_source_update(
        self, set: Mapping[str, object], condition: str | Column | None = None
    ) -> MergeBuilder:
        """Update a row of the table that no source row matches.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(When.NOT_MATCHED_BY_SOURCE, Do.UPDATE, dict(set), condition))

    def when_not_matched_by_source_delete(self, condition: str | Column | None = None) -> MergeBuilder:
        """Delete a row of the table that no source row matches.

        Arguments, result and errors as of `when_matched_update`.
        """
        return self.with_clause(Clause(When.NOT_MATCHED_BY_SOURCE, Do.DELETE, None, condition))

    def with_clause(self, clause: Clause) -> MergeBuilder:
        """Add a clause behind the others.

        Args:
            clause: The clause.

        Returns:
            A MERGE with this clause behind the others.

        Raises:
            QueryError: An earlier clause for such rows has no condition, so that none is left for this one.
        """
        for before in self.clauses:
            if before.when is clause.when and before.condition is None:
                raise QueryError(
                    f"only the last clause for rows {clause.when.value} may be without a condition: the one before "
                    "takes them all"
                )
        return replace(self, clauses=(*self.clauses, clause))

    def execute(self) -> ChangeResult:
        """Run the MERGE, as one commit.

        Returns:
            What was done, counted.

        Raises:
            QueryError: There are no clauses.
            AmbiguousMergeError: Several source rows match a row of the table, and it is not only deleted.
            SchemaMismatchError: A column is missing, or a value does not go with its column.
            RecordKeyError: A clause would change the record key of a row.
            ConflictError: Another writer changed the rows that were read, each time that it was tried.
        """
        if not self.clauses:
            raise QueryError("a MERGE needs at least one clause: when_matched_…, when_not_matched_…")
        return with_retries(self.opts, self._attempt)

    def _attempt(self) -> ChangeResult:
        spark = self.source.sparkSession
        target = Target.pin(spark, self.path, self.opts)
        merge = _Merge(self, spark, target)
        joined = merge.acted_on()  # tells of every mistake in the clauses
        with Cached() as cached:
            upserted = self._upsert(merge, cached)
            if upserted is not None:
                return upserted
            acted = cached.add(joined)
            counts = _counted(acted, merge)
            rows, changes = merge.changes(acted, cached)
            done = write_changes(rows, target.client, target.opts, Operation.UPSERT, target.reads, changes)
        updated, deleted, inserted = counts
        return ChangeResult(done, updated + deleted, updated, inserted, deleted)

    def _upsert(self, merge: _Merge, cached: Cached) -> ChangeResult | None:
        """Run the MERGE as an upsert; None if that is something else."""
        target = merge.target
        if not merge.is_upsert:
            return None
        rows = cached.add(merge.source_rows())
        with task_errors():
            count = distinct_rows(rows, target)
        if count is None:
            return None
        opts = target.opts.merged({options.COMBINE_BEFORE_UPSERT.key: False})
        done = write_changes(rows, target.client, opts, Operation.UPSERT, target.reads, None)
        updated = count - done.num_inserts
        return ChangeResult(done, updated, updated, done.num_inserts)


@dataclass(frozen=True, slots=True)
class _Merge:
    """One attempt."""

    builder: MergeBuilder
    spark: SparkSession
    target: Target

    def _has(self, when: When) -> bool:
        return any(clause.when is when for clause in self.builder.clauses)

    @property
    def is_upsert(self) -> bool:
        """True if every source row becomes the newest version of its record."""
        given = {(clause.when, clause.do) for clause in self.builder.clauses}
        whole = all(clause.values is None and clause.condition is None for clause in self.builder.clauses)
        wanted = {(When.MATCHED, Do.UPDATE), (When.NOT_MATCHED, Do.INSERT)}
        builder = self.builder
        return whole and given == wanted and joins_by_key(self.target, builder.on, builder.alias, builder.source)

    def source_rows(self) -> DataFrame:
        """Return the source's rows with the columns of the table."""
        names, source = self.target.schema.names, self.builder.source
        values = check_types(source, ((name, F.col(quoted([name]))) for name in names), self.target.schema)
        return source.select(*(value.alias(name) for name, value in values.items()))

    def acted_on(self) -> DataFrame:
        """Return the pairs of rows that a clause takes: new values and stored ones, places, and the number of the
        clause."""
        builder, target = self.builder, self.target
        taken = {"_pyhudi_row_id", _IN_TARGET}
        rows = target.rows.select("*", F.monotonically_increasing_id().alias(_ROW_ID), F.lit(True).alias(_IN_TARGET))
        source = builder.source
        clash = sorted(name for name in source.columns if name in taken or name.startswith("_pyhudi_"))
        if clash:
            raise SchemaMismatchError(f"the source's column name {clash[0]!r} is reserved; rename the column")
        copies = [F.col(quoted([name])).alias(self._copy(name)) for name in self._copied()]
        marked = source.select("*", *copies, F.lit(True).alias(_IN_SOURCE))
        joined = rows.alias(builder.alias).join(marked, as_column(builder.on), self._join())
        number = self._clause_number()
        chosen = joined.withColumn(_CLAUSE, number).where(F.col(_CLAUSE).isNotNull())
        return chosen.select(*self._columns(chosen))

    def _join(self) -> str:
        return {
            (False, False): "inner",
            (True, False): "right",
            (False, True): "left",
            (True, True): "full",
        }[self._has(When.NOT_MATCHED), self._has(When.NOT_MATCHED_BY_SOURCE)]

    def _copied(self) -> list[str]:
        """The source's columns that are taken by name."""
        if all(clause.values is not None or clause.do is Do.DELETE for clause in self.builder.clauses):
            return []
        sensitive = is_case_sensitive(self.spark)
        names = [name for name in self.builder.source.columns if not is_meta_column(name)]
        known = {name if sensitive else name.lower() for name in names}
        missing = [n for n in self.target.schema.names if (n if sensitive else n.lower()) not in known]
        if missing:
            raise SchemaMismatchError(
                f"the source lacks the column {missing[0]!r}, which updating or inserting all columns needs; its "
                f"columns are {', '.join(names)}"
            )
        own = {name if sensitive else name.lower() for name in self.target.schema.names}
        return [name for name in names if (name if sensitive else name.lower()) in own]

    def _copy(self, name: str) -> str:
        return _SOURCE + (name if is_case_sensitive(self.spark) else name.lower())

    def _clause_number(self) -> Column:
        found = F.lit(None).cast("int")
        for number, clause in reversed(list(enumerate(self.builder.clauses))):
            in_target, in_source = F.col(_IN_TARGET).isNotNull(), F.col(_IN_SOURCE).isNotNull()
            fits = {
                When.MATCHED: in_target & in_source,
                When.NOT_MATCHED: ~in_target & in_source,
                When.NOT_MATCHED_BY_SOURCE: in_target & ~in_source,
            }[clause.when]
            if clause.condition is not None:
                fits &= F.coalesce(as_column(clause.condition), F.lit(False))
            found = F.when(fits, F.lit(number)).otherwise(found)
        return found

    def _columns(self, joined: DataFrame) -> list[Column]:
        """The result's columns: the table's with their new values, those before where rows may move, and helpers."""
        target, alias = self.target, self.builder.alias
        by_clause = [self._values(clause, joined) for clause in self.builder.clauses]
        columns: list[Column] = []
        for name in target.schema.names:
            stored = F.col(quoted([alias, name]))
            value = stored
            for number, values in enumerate(by_clause):
                if name in values:
                    value = F.when(F.col(_CLAUSE) == number, values[name]).otherwise(value)
            columns.append(value.alias(name))
        if self.moves:
            columns.append(F.struct(*(F.col(quoted([alias, n])).alias(n) for n in target.schema.names)).alias(_STORED))
        kinds = [clause.do.value for clause in self.builder.clauses]
        kind = reduce(
            lambda found, pair: F.when(F.col(_CLAUSE) == pair[0], F.lit(pair[1])).otherwise(found),
            list(enumerate(kinds))[1:],
            F.lit(kinds[0]),
        )
        return [*columns, *(F.col(n) for n in target.helpers), F.col(_ROW_ID), F.col(_CLAUSE), kind.alias(_KIND)]

    def _values(self, clause: Clause, joined: DataFrame) -> dict[str, Column]:
        """The assignments of a clause, with the types of the table's columns."""
        target = self.target
        if clause.do is Do.DELETE:
            return {}
        if clause.values is None:
            given = [(name, F.col(quoted([self._copy(name)]))) for name in target.schema.names]
            return check_types(joined, given, target.schema)
        sensitive, alias = is_case_sensitive(self.spark), self.builder.alias
        named = resolved(clause.values, target.schema, case_sensitive=sensitive, alias=alias)
        values = check_types(joined, ((name, as_column(value)) for name, value in named.items()), target.schema)
        if clause.do is Do.INSERT:
            kinds = {field.name: field.dataType for field in target.schema.fields}
            return {name: values.get(name, F.lit(None).cast(kinds[name])) for name in target.schema.names}
        return values

    def _assigned(self) -> frozenset[str]:
        """Columns that an update assigns."""
        found: set[str] = set()
        sensitive = is_case_sensitive(self.spark)
        for clause in self.builder.clauses:
            if clause.do is not Do.UPDATE:
                continue
            if clause.values is None:
                return frozenset(self.target.schema.names)
            named = resolved(clause.values, self.target.schema, case_sensitive=sensitive, alias=self.builder.alias)
            found |= named.keys()
        return frozenset(found)

    @property
    def moves(self) -> bool:
        """True if an update may bring a row to another partition."""
        return bool(self.target.partition_columns & self._assigned())

    def _inserts_new_keys(self) -> bool:
        """Return whether rows that match nothing have keys that the table has not: they were looked for by the key
        itself, which they are inserted with."""
        builder, target = self.builder, self.target
        inserts = [clause for clause in builder.clauses if clause.do is Do.INSERT]
        if not isinstance(builder.on, str) or self.moves or any(clause.values is not None for clause in inserts):
            return False
        found = equated_columns(builder.on, builder.alias)
        keys = frozenset(name.lower() for name in target.spec.record_fields)
        is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
        partitions = frozenset() if is_global else frozenset(name.lower() for name in target.partition_columns)
        return found is not None and bool(keys) and keys <= found <= keys | partitions

    def changes(self, acted: DataFrame, cached: Cached) -> tuple[DataFrame, RowChanges]:
        """Return what is to be written."""
        target = self.target
        deleted = F.col(_KIND) == _DELETE
        keys = bool(target.key_columns & self._assigned())
        found = RowChanges(target.placed, keys, self.moves, self._inserts_new_keys())
        own = {name: F.col(quoted([name])) for name in target.schema.names}
        # of a row that is deleted twice one will do
        if any(c.do is Do.DELETE and c.when is When.MATCHED for c in self.builder.clauses):
            twice = acted.where(deleted).dropDuplicates([_ROW_ID])
            acted = acted.where(~deleted).unionByName(twice)
        if self.moves:
            stored = {name: F.col(quoted([_STORED, name])) for name in target.schema.names}
            return moved_apart(acted, target, own, deleted, cached, stored), found
        return acted.select(*own.values(), *target.helpers, deleted.alias(DELETE)), found


def _counted(acted: DataFrame, merge: _Merge) -> tuple[int, int, int]:
    """Count the rows that are updated, deleted and inserted. Runs a Spark job.

    Raises:
        AmbiguousMergeError: a row of the table is changed by several source rows.
    """
    by_row = acted.groupBy(_ROW_ID).agg(
        *(F.count(F.when(F.col(_KIND) == kind, 1)).alias(f"k{kind}") for kind in (_UPDATE, _DELETE, _INSERT)),
        F.first(STORED_KEY).alias("key"),
    )
    several = F.col(_ROW_ID).isNotNull() & (F.col("k0") + F.when(F.col("k0") > 0, F.col("k1")).otherwise(0) > 1)
    # which of several deletes took a row does not matter, unless another pair of the row met no condition
    if any(c.do is Do.DELETE and c.when is When.MATCHED and c.condition is not None for c in merge.builder.clauses):
        several |= F.col(_ROW_ID).isNotNull() & (F.col("k1") > 1)
    with task_errors():
        row = by_row.agg(
            F.sum("k0"),
            F.sum(F.when(F.col(_ROW_ID).isNotNull(), F.least(F.col("k1"), F.lit(1)))),
            F.sum("k2"),
            F.count(F.when(several, 1)),
            F.max(F.when(several, F.col("key"))),
        ).first()
    assert row is not None
    if row[3]:
        raise AmbiguousMergeError(
            f"{row[3]:,} rows of the table match several source rows each (one has the record key {row[4]!r}), so that "
            "it is not certain what becomes of them; nothing was written. Leave one source row for each in the source"
        )
    return row[0] or 0, row[1] or 0, row[2] or 0
