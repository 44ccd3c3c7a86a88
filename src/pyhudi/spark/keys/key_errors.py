"""Rows without valid record keys or partition paths: expressions that fail on them, and errors that count them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.errors import HudiError, RecordKeyError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.spark.column_names import resolve
from pyhudi.spark.keys.value_formatter import has_empty_text
from pyhudi.spark.spark_errors import failure, task_errors


def key_failure(*message: str | Column) -> Column:
    """Return a column, castable to all types, whose evaluation fails with RecordKeyError. ``message``: texts."""
    return failure(RecordKeyError, *message, "; nothing was committed")


@contextmanager
def key_errors(df: DataFrame, spec: KeySpec) -> Iterator[None]:
    """Return a context manager for Spark actions on rows with keys, which re-raises errors of tasks (`task_errors`). If
    keys are null or empty, one aggregate over the input counts such rows for the message."""

    def with_count(error: HudiError) -> HudiError:
        if not isinstance(error, RecordKeyError) or spec.unset_key_message not in str(error):
            return error
        try:
            with task_errors():  # Other values of these rows may fail, too.
                check_keys(df, spec)
        except RecordKeyError as counted:
            return counted
        return error

    with task_errors(with_count):
        yield


def check_keys(df: DataFrame, spec: KeySpec) -> None:
    """Check that no record key is null or empty. Runs one aggregate over the key columns; none if the schema rules out
    null and empty keys, or a registered generator makes them of the columns.

    Raises:
        RecordKeyError: Keys are null or empty. The message has the number of rows.
    """
    if spec.key_class is not None:
        return
    unset: dict[str, Column] = {}
    for name in spec.record_fields:
        column, kind = resolve(df.schema, name, "record key")
        if has_empty_text(kind):
            unset[name] = F.coalesce(F.length(column) == 0, F.lit(True))
        elif df.schema[name].nullable if name in df.schema.names else True:
            unset[name] = column.isNull()
    if len(unset) < len(spec.record_fields) or not unset:
        return
    wrong = F.count(F.when(reduce(and_, unset.values()), 1))
    row = df.agg(wrong.alias("wrong"), F.count(F.lit(1)).alias("total")).first()
    assert row is not None
    if row["wrong"]:
        raise RecordKeyError(
            f"{spec.unset_key_message} in {row['wrong']:,} of {row['total']:,} rows; nothing was written. "
            "Fill or filter these rows, or name other fields in hoodie.datasource.write.recordkey.field"
        )
