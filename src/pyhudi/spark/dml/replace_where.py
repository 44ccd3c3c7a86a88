"""Replacement of the rows that meet a condition: INSERT … REPLACE WHERE, and ``writeTo(…).overwrite(condition)``.

The partitions that have such rows, and those of the new rows, get new file groups, as by the operation
insert_overwrite: with the new rows, and with copies of the rows that stay. So neither ordering values nor stored
versions decide over the new rows, and it makes no difference which index and which type the table has.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import Operation
from pyhudi.errors import QueryError, RecordKeyError
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import as_column
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.dml.target_table import read_target
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.read.pruning.dataframe_pruning import text_of_condition
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.dml_commit import DmlCommit
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import WriteResult

_MEETS, _NEW_ROWS = "_pyhudi_meets", "_pyhudi_new_rows"


def replace_where_pinned(
    spark: SparkSession, pinned: TargetSnapshot, rows: DataFrame, condition: str | Column
) -> WriteResult:
    """Replace the rows that meet a condition by new rows, in one commit. Runs Spark jobs.

    Args:
        spark: The session.
        pinned: The table.
        rows: The new rows, with the columns of the table.
        condition: SQL text or a Column, on columns of the table.

    Returns:
        The result. Nothing is committed if there are neither rows to replace nor new ones.

    Raises:
        QueryError: A new row does not meet the condition.
        RecordKeyError: A new row has no key, or that of a row that stays.
        ConflictError: Another writer changed the rows that were read, or the partitions that are replaced.
    """
    meets = F.coalesce(as_column(condition), F.lit(False))
    columns = [quoted([name]) for name in pinned.schema.names]
    checked = rows.select(*columns, meets.alias(_MEETS))  # here Spark refuses an invalid condition
    with CachedFrames() as cached, key_errors(rows, pinned.spec):
        new = cached.add(with_keys(checked, pinned.spec, ""))
        text = condition if isinstance(condition, str) else text_of_condition(rows, condition, _arrow_schema(pinned))
        added = _partitions_of_new_rows(new, text or _name_of(rows, condition))
        target = read_target(spark, pinned, text)
        matching = target.rows if text is not None else target.rows.where(meets)
        paths = {row[0] for row in matching.select(STORED_PATH).distinct().collect()}
        partitions = sorted({*added, *paths})
        if not partitions:
            return WriteResult(pinned.client.storage.uri(), type_name(Operation.INSERT_OVERWRITE))
        kept = pinned.partition_rows(spark, partitions).where(~meets)
        if not pinned.spec.auto_keys:
            is_global = pinned.opts.get_typed(options.INDEX_TYPE).is_global
            rest = pinned.partition_rows(spark).where(~meets) if is_global else kept
            _refuse_keys_that_stay(new, rest, is_global=is_global)
        reads = target.reads.union(pinned.partition_reads(partitions))
        if snapshot_ids(rows, pinned.client.storage):
            reads = pinned.whole_table()
        written = new.select(*columns).unionByName(kept.select(*columns))
        return write_changes(
            written,
            pinned.keyed,
            pinned.opts,
            Operation.INSERT_OVERWRITE,
            DmlCommit(reads),
            partitions=partitions,
        )


def _arrow_schema(pinned: TargetSnapshot) -> pa.Schema:
    return from_spark_json(pinned.schema.json())


def _name_of(rows: DataFrame, condition: str | Column) -> str:
    """Return the name that Spark gives a condition as a column: its text, but for the quotes of literals."""
    name: str = rows.select(as_column(condition)).columns[0]
    return name


def _partitions_of_new_rows(new: DataFrame, condition: str) -> list[str]:
    """Return the partition paths of the new rows.

    Args:
        new: The new rows, with their partition paths.
        condition: The condition, as it is named in an error.

    Raises:
        QueryError: A row does not meet the condition.
    """
    counted = new.groupBy(PARTITION_PATH).agg(
        F.count(F.lit(1)).alias(_NEW_ROWS), F.sum(F.col(_MEETS).cast("bigint")).alias(_MEETS)
    )
    found = counted.collect()  # one row for each partition
    total, met = sum(row[_NEW_ROWS] for row in found), sum(row[_MEETS] for row in found)
    if met < total:
        raise QueryError(
            f"{total - met:,} of the {total:,} new rows do not meet the condition {condition} of the rows that they "
            "replace; nothing was written. Leave these rows out, or INSERT them by a statement of their own"
        )
    return [row[PARTITION_PATH] for row in found]


def _refuse_keys_that_stay(new: DataFrame, kept: DataFrame, *, is_global: bool) -> None:
    """Refuse new rows with the keys of rows that stay, which would be there twice.

    Args:
        new: The new rows, with their keys and partition paths.
        kept: Rows that stay, with theirs (`STORED_KEY`, `STORED_PATH`).
        is_global: Rows with the same key are one record even if they are in different partitions.

    Raises:
        RecordKeyError: There is such a row.
    """
    same = F.col(RECORD_KEY) == F.col(STORED_KEY)
    if not is_global:
        same &= F.col(PARTITION_PATH) == F.col(STORED_PATH)
    stored = kept.select(STORED_KEY, STORED_PATH)
    example = stored.join(new.select(RECORD_KEY, PARTITION_PATH), same, "left_semi").first()
    if example is not None:
        raise RecordKeyError(
            f"a new row has the key {example[0]!r} of a row in the partition {example[1]!r} that does not meet the "
            "condition of the rows to replace, and stays; nothing was written. Extend the condition to it, or use MERGE"
        )
