"""Numbers of rows changed by a MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, Row
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.errors import AmbiguousMergeError
from pyhudi.spark.dml.merge.clause_evaluation import KIND, ROW_ID
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.merge.merge_pairs import MergePairs
from pyhudi.spark.helper_columns import STORED_KEY
from pyhudi.spark.spark_errors import task_errors
from pyhudi.sql.statements import ClauseKind
from pyhudi.write.write_result import WriteResult


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Numbers of rows that are updated, deleted and inserted. ``pairs``: number of the pairs, if they were counted;
    ``repeated_deletes``: several pairs delete the same row."""

    updated: int
    deleted: int
    inserted: int
    pairs: int = 0
    repeated_deletes: bool = False

    @classmethod
    def of_write(cls, result: WriteResult) -> MergeCounts:
        """Return the numbers that the plan of a write has counted, otherwise those of the written files."""
        planned = result.planned_changes
        if planned is None or planned.inserted is None:
            return cls(result.num_updates, result.num_deletes, result.num_inserts)
        return cls(planned.rows - planned.deleted - planned.inserted, planned.deleted, planned.inserted)


def count_changes(pairs: MergePairs, clauses: Sequence[Clause]) -> MergeCounts:
    """Count the rows that are updated, deleted and inserted. Runs a Spark job.

    Raises:
        AmbiguousMergeError: A row of the table is changed by several source rows.
    """
    if pairs.unique:
        with task_errors():
            row = pairs.rows.agg(
                *(F.count(F.when(_action_is(kind), 1)).alias(kind.name) for kind in MergeAction)
            ).first()
        assert row is not None
        numbers = (row[MergeAction.UPDATE.name], row[MergeAction.DELETE.name], row[MergeAction.INSERT.name])
        return MergeCounts(*numbers, pairs=sum(numbers))
    row = _counted_by_row(pairs, clauses)
    if row["ambiguous"]:
        raise AmbiguousMergeError(
            f"{_ambiguous_rows(row)}, so the result is ambiguous; nothing was written. Remove the other source rows "
            "from the source"
        )
    return MergeCounts(
        row["updated"] or 0,
        row["deleted"] or 0,
        row["inserted"] or 0,
        pairs=row["pairs"] or 0,
        repeated_deletes=(row["max_deletes"] or 0) > 1,
    )


def _ambiguous_rows(row: Row) -> str:
    """Return the rows of the table that several source rows change, as text."""
    if row["ambiguous"] == 1:
        return f"the row of the table with the record key {row['example']!r} matches several source rows"
    return (
        f"{row['ambiguous']:,} rows of the table match several source rows each (for example that with the record key "
        f"{row['example']!r})"
    )


def _action_is(kind: MergeAction) -> Column:
    return F.col(KIND) == kind.value


def _counted_by_row(pairs: MergePairs, clauses: Sequence[Clause]) -> Row:
    """Return one row with the columns updated, deleted, inserted, pairs, ambiguous, example and max_deletes. Pairs are
    first counted per row of the table."""
    updates, deletes, stored = F.col("updates"), F.col("deletes"), F.col(ROW_ID).isNotNull()
    by_row = pairs.rows.groupBy(ROW_ID).agg(
        F.count(F.when(_action_is(MergeAction.UPDATE), 1)).alias("updates"),
        F.count(F.when(_action_is(MergeAction.DELETE), 1)).alias("deletes"),
        F.count(F.when(_action_is(MergeAction.INSERT), 1)).alias("inserts"),
        F.first(STORED_KEY).alias("key"),
    )
    several = stored & (updates + F.when(updates > 0, deletes).otherwise(0) > 1)
    # It does not matter which of several clauses deletes a row, unless no clause applies to another of its pairs.
    if any(
        c.action is MergeAction.DELETE and c.kind is ClauseKind.MATCHED and c.condition is not None for c in clauses
    ):
        several |= stored & (deletes > 1)
    with task_errors():
        row = by_row.agg(
            F.sum("updates").alias("updated"),
            F.sum(F.when(stored, F.least(deletes, F.lit(1)))).alias("deleted"),
            F.sum("inserts").alias("inserted"),
            F.sum(updates + deletes + F.col("inserts")).alias("pairs"),
            F.count(F.when(several, 1)).alias("ambiguous"),
            F.max(F.when(several, F.col("key"))).alias("example"),
            F.max(F.when(stored, deletes)).alias("max_deletes"),
        ).first()
    assert row is not None
    return row
