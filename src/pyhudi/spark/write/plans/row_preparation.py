"""Rows of a write before they are routed, and the errors of rows that must not be written."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from pyhudi.config import options
from pyhudi.config.enums import Operation
from pyhudi.errors import RecordKeyError, TransactionError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted
from pyhudi.spark.keys.deduplication import mark_deletes
from pyhudi.spark.lookup.key_constraint import has_action
from pyhudi.spark.spark_errors import failure
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.write.location_columns import IS_DELETE
from pyhudi.write.row_action import DELETING, ROW_ACTION


def with_delete_marks(job: WriteJob, rows: DataFrame) -> DataFrame:
    """Return keyed rows with the marks of those that delete their records; a delete needs only the keys of its rows."""
    if ROW_ACTION in rows.columns:
        return rows.withColumn(IS_DELETE, has_action(*DELETING))
    deletes = job.operation is Operation.DELETE
    return mark_deletes(_keys_only(rows, job.spec) if deletes else rows, job.merging, every_row=deletes)


def _keys_only(rows: DataFrame, spec: KeySpec) -> DataFrame:
    """Select the keys of records to be deleted, and the columns from which they are made."""
    tops = dict.fromkeys(top_column(name, rows.columns) for name in spec.record_fields)
    return rows.select(*(quoted([name]) for name in tops), RECORD_KEY, PARTITION_PATH)


def refuse_stored_keys(count: int) -> None:
    """Refuse an insert whose keys the table has, as the policy for duplicates requests.

    Args:
        count: Number of stored records with these keys.

    Raises:
        RecordKeyError: There are some.
    """
    if count:
        raise RecordKeyError(
            f"the table has the keys of {count:,} records already, and {options.INSERT_DUP_POLICY.key}=fail; nothing "
            "was written. Use upsert to update them, or the policy drop to leave them out"
        )


def changed_input_failure(*what: str | Column) -> Column:
    """Return a column, castable to all types, whose evaluation fails with TransactionError, for rows of which the plan
    of the write does not know. If an executor is lost, its cached rows are computed again, and may be other ones.

    Args:
        what: What the plan does not have: texts.
    """
    text = (
        "the input gave other rows when it was read again, after an executor was lost; nothing was committed. Write a "
        "DataFrame that gives the same rows each time, such as one that was stored first. The plan does not have the "
    )
    return failure(TransactionError, text, *what)
