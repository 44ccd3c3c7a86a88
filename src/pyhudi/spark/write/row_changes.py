"""Rows of an UPDATE, DELETE or MERGE on their way to their file groups.

They have the table's own columns with their new values, and beside them what was known of the stored row: its key, its
partition path and, in tables with meta fields, its file group. So nothing is looked up again.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.driver_frames import small_frame
from pyhudi.spark.keys.key_generator import key_failure, with_keys
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.write.location_columns import BASE_PATH, DELETE, FILE_ID, ROW, SOMEWHERE

STORED_KEY = "_pyhudi_stored_key"
"""Text: the record key of the stored row; null for a new record."""
STORED_PATH = "_pyhudi_stored_path"
"""Text: its partition path."""
CHANGE_COLUMNS = frozenset((STORED_KEY, STORED_PATH, DELETE, FILE_ID))
"""Columns of a change that are not the table's. `FILE_ID` is there only if rows are placed."""


def keyed_changes(job: WriteJob, instant: str) -> DataFrame:
    """Return the changes of a job with their record keys and partition paths: those that they have, or, of new
    records, those that are made of their columns. ``instant`` is needed for generated keys.

    Evaluating the result fails on a row whose record key was assigned another value.
    """
    assert job.changes is not None
    rows = with_keys(job.df, job.spec, instant)
    stored, made = F.col(STORED_KEY), F.col(RECORD_KEY)
    key = F.coalesce(stored, made)
    if job.changes.keys_assigned and not job.spec.auto_keys:
        message = F.concat(
            F.lit("the record key of the stored row '"), stored, F.lit("' cannot be changed to '"), made, F.lit("'")
        )
        same = stored.isNull() | (stored == made) | F.col(DELETE)
        key = F.when(same, key).otherwise(key_failure(message))
    path = F.coalesce(F.col(STORED_PATH), F.col(PARTITION_PATH))
    if job.changes.partition_assigned:
        path = F.when(F.col(DELETE), path).otherwise(F.col(PARTITION_PATH))
    names = [name for name in rows.columns if name not in (STORED_KEY, STORED_PATH, RECORD_KEY, PARTITION_PATH)]
    if not job.changes.placed:
        names = [name for name in names if name != FILE_ID]
    return rows.select(*(quoted([name]) for name in names), key.alias(RECORD_KEY), path.alias(PARTITION_PATH))


def placed_changes(rows: DataFrame, slices: pa.Table) -> DataFrame:
    """Tag rows whose file groups are known, which are among ``slices`` (SLICE_SCHEMA).

    Evaluating the result fails on a row of another file group: the table was changed since it was read.
    """
    known = pa.table(
        [slices["partition"], slices["file_id"], slices["base_path"]], names=[PARTITION_PATH, FILE_ID, BASE_PATH]
    ).append_column("_pyhudi_known", pa.repeat(pa.scalar(True), slices.num_rows))
    own = [name for name in rows.columns if name != FILE_ID]
    found = rows.join(F.broadcast(small_frame(rows.sparkSession, known)), [PARTITION_PATH, FILE_ID], "left")
    gone = F.raise_error(F.concat(F.lit("the table has no file group "), F.col(FILE_ID))).cast("string")
    return found.select(
        *(quoted([name]) for name in own),
        F.when(F.col("_pyhudi_known"), F.col(FILE_ID)).otherwise(gone).alias(FILE_ID),
        F.col(BASE_PATH),
        F.lit(SOMEWHERE).cast("bigint").alias(ROW),
    )
