"""Validation of a write by SQL queries before it is published (`pyhudi.write.settings.precommit_validators`).

The queries see the partitions that the write has changed, before and after it, with merged log files. The table after
the write is read by a timeline in which the write is completed. Files are listed from the storage, as the metadata
table contains the files of the write only after its commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.config import Options, options
from pyhudi.errors import ValidationError
from pyhudi.read.query.query import Query
from pyhudi.read.scan_planner import plan_scan
from pyhudi.spark.execution.temporary_views import temporary_view
from pyhudi.spark.read.dataframe_reader import dataframe
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.staged_timeline import StagedTimeline
from pyhudi.write.settings.precommit_validators import Expectation, QueryValidation

_SHOWN = 5
"""Maximum number of rows in a message."""
_FROM_STORAGE = Options.parse({options.METADATA_ENABLE.key: "false"})


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A table with a write that is not published yet.

    Attributes:
        before: The table as it is.
        after: The table as it will be.
        partitions: Paths of the partitions that the write changes.
    """

    before: TableSnapshot
    after: TableSnapshot
    partitions: tuple[str, ...]

    @classmethod
    def from_commit(
        cls, before: TableSnapshot, instant: str, metadata: CommitMetadata, *, replaced_by: TableConfig | None = None
    ) -> StagedTable:
        """Return a table with a write.

        Args:
            before: The table, with the timeline that contains the pending instant.
            instant: Requested time of the pending instant.
            metadata: Metadata of the commit.
            replaced_by: Configuration of the new table that the write puts in place of this one; None: none.
        """
        pending = before.active.timeline.find(instant)
        assert pending is not None
        config = replaced_by or before.config
        base = before.active if replaced_by is None else ActiveTimeline(before.storage, config.layout, [])
        after = TableSnapshot(before.storage, config, StagedTimeline(base, pending, metadata))
        written: set[str] = set(pc.unique(metadata.stats["partitionPath"]).to_pylist())
        replaced = metadata.replaced
        changed = written if replaced is None else written.union(replaced["partition"].to_pylist())
        return cls(before, after, tuple(sorted(changed)))


def validate_write(spark: SparkSession, staged: StagedTable, validations: Sequence[QueryValidation]) -> None:
    """Run the queries of the validations.

    Args:
        spark: The session.
        staged: The table and the write.
        validations: The queries and their expected results.

    Raises:
        ValidationError: A query did not give the expected result, or cannot be run. The message has the query, and
            its results or the error.
    """
    after = _rows(spark, staged.after, staged.partitions)
    is_new = not staged.before.active.timeline.completed().writes()
    before = after.limit(0) if is_new else _rows(spark, staged.before, staged.partitions)
    name = f"pyhudi_staged_{uuid4().hex}"
    views = {f"{name}_before": before, f"{name}_after": after}
    with ExitStack() as shown:
        for view, rows in views.items():
            shown.enter_context(temporary_view(rows, view))
        for validation in validations:
            try:
                _validate(validation, *(spark.sql(validation.query_for(view)) for view in views))
            except AnalysisException as error:
                raise ValidationError(
                    f"the write was rolled back: the query {validation.query!r} cannot be run: {error}"
                ) from error


def _rows(spark: SparkSession, table: TableSnapshot, partitions: Sequence[str]) -> DataFrame:
    """Return the rows of some partitions of a table."""
    plan = plan_scan(table, Query(partitions=tuple(partitions)), opts=_FROM_STORAGE)
    return dataframe(SparkScan(spark, table, plan, _FROM_STORAGE), merges=False)


def _validate(validation: QueryValidation, before: DataFrame, after: DataFrame) -> None:
    if validation.expectation is Expectation.SINGLE_RESULT:
        _check_single_result(validation, after)
        return
    equal = not before.exceptAll(after).take(1) and not after.exceptAll(before).take(1)
    if equal is (validation.expectation is Expectation.EQUAL):
        return
    expected = "the same rows" if validation.expectation is Expectation.EQUAL else "other rows"
    raise ValidationError(
        f"the write was rolled back: the query {validation.query!r} should return {expected} after it; before: "
        f"{_shown(before)}; after: {_shown(after)}"
    )


def _check_single_result(validation: QueryValidation, after: DataFrame) -> None:
    values = after.toDF(*(f"value_{number}" for number in range(len(after.columns))))
    texts = values.select(*(sf.col(name).cast("string") for name in values.columns)).take(2)
    if len(texts) == 1 and list(texts[0]) == [validation.expected]:
        return
    raise ValidationError(
        f"the write was rolled back: the query {validation.query!r} should return {validation.expected!r} after it, "
        f"but returned {_shown(after)}"
    )


def _shown(rows: DataFrame) -> str:
    shown = [tuple(row) for row in rows.take(_SHOWN + 1)]
    more = ", …" if len(shown) > _SHOWN else ""
    return f"[{', '.join(map(str, shown[:_SHOWN]))}{more}]"
