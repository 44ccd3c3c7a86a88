"""Ordering values of deletes, which are those of the records that they delete."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted_name, select_names
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import is_marked_delete
from pyhudi.spark.lookup.key_constraint import CheckedBatch
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.write.location_columns import IS_DELETE

_ORDERING = "_pyhudi_ordering"


def with_stored_ordering(job: WriteJob, rows: DataFrame, checked: CheckedBatch, cached: CachedFrames) -> DataFrame:
    """Return the rows of a job with the ordering values of the records that they delete, where the job reads these
    (`DmlCommit.ordering_values`). Deletes of keys that the table does not have are left out. Lazy.

    Args:
        job: The job.
        rows: Its rows, with keys and `IS_DELETE`, cached.
        checked: The same rows, which have different keys.
        cached: Persists the deletes, so that the records are read once.
    """
    read = None if job.dml is None else job.dml.ordering_values
    if read is None or not checked.deletes:
        return rows
    stored = read([path for path, _ in checked.partitions])
    # The check has made sure of it that values of these columns are equal if the keys are; numbers are read faster.
    by = [PARTITION_PATH, *job.spec.record_fields]
    ordering = [name for name in stored.columns if name not in by]
    partitions = (top_column(field.name, rows.columns) for field in job.spec.partition_fields)
    names = list(dict.fromkeys([*by, RECORD_KEY, *(name for name in partitions if name not in ordering)]))
    few = checked.deletes <= job.opts.get_typed(options.INDEX_BROADCAST_ROWS)
    deletes = select_names(rows.where(is_marked_delete()), names)
    joined = stored.join(F.broadcast(deletes) if few else deletes, by)
    # the table may have several records with a key
    greatest = F.max(F.struct(*map(quoted_name, ordering))).alias(_ORDERING)
    one_of_key = joined.groupBy(*map(quoted_name, names)).agg(greatest)
    ordered = one_of_key.select(*map(quoted_name, names), f"{_ORDERING}.*", F.lit(True).alias(IS_DELETE))
    return rows.where(~is_marked_delete()).unionByName(cached.add(ordered, checked.deletes), allowMissingColumns=True)
