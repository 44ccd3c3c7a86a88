"""Rows that were read from a table with generated record keys and are written back to it: only their meta columns
identify the records."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config.enums import Operation
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.keys.key_errors import key_failure
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.write.write_job import WriteJob

_NEEDED = frozenset((RECORD_KEY, PARTITION_PATH))


def identifies_records(columns: Iterable[str]) -> bool:
    """Return True if rows with these columns identify records of a table."""
    return set(columns) >= _NEEDED


def keep_stored_keys(df: DataFrame) -> DataFrame:
    """Return the columns of the frame without meta columns, and the record identity in its meta columns as
    `STORED_KEY`, `STORED_PATH`."""
    table_columns = [quoted([name]) for name in df.columns if not is_meta_column(name)]
    return df.selectExpr(*table_columns, f"{RECORD_KEY} AS {STORED_KEY}", f"{PARTITION_PATH} AS {STORED_PATH}")


def with_stored_keys(job: WriteJob, instant: str) -> DataFrame:
    """Return the rows of a job with the record keys and partition paths that they were read with. A row of an upsert
    without them is a new record, and gets a key generated from ``instant``, if the table records a key generator.

    Evaluation fails on a row without a key that is to be deleted, or belongs to a table without a key generator, and on
    a row to be updated that belongs to another partition than the one it was read from.
    """
    deletes = job.operation is Operation.DELETE
    only_stored = deletes or job.config.keys_are_of_writer
    rows = job.df if only_stored else with_keys(job.df, job.spec, instant)
    key, path = F.col(STORED_KEY), F.col(STORED_PATH)
    if only_stored:
        what = "deleted" if deletes else "updated"
        missing = f"a row to be {what} has no {RECORD_KEY}, so it was not read from the table"
        key, path = F.coalesce(key, key_failure(missing)), F.coalesce(path, F.lit(""))
    else:
        moved = (
            "the record '",
            key,
            "' was read from the partition '",
            path,
            "', but its values belong to the partition '",
            F.col(PARTITION_PATH),
            "'; UPDATE or HudiTable.update move it, and without its meta columns it is inserted as a new record",
        )
        is_unmoved = key.isNull() | path.isNull() | (path == F.col(PARTITION_PATH))
        path = F.when(is_unmoved, F.col(PARTITION_PATH)).otherwise(key_failure(*moved))
        key = F.coalesce(key, F.col(RECORD_KEY))
    return rows.withColumns({RECORD_KEY: key, PARTITION_PATH: path}).drop(STORED_KEY, STORED_PATH)
