"""Ordering values of deletes, which are those of the records that they delete."""

from __future__ import annotations

from collections.abc import Sequence

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

_KEY = (RECORD_KEY, PARTITION_PATH)
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
    few = checked.deletes <= job.opts.get_typed(options.INDEX_BROADCAST_ROWS)
    ordering = [name for name in stored.columns if name not in _KEY]
    others = [name for name in _columns_of_deletes(job, rows) if name not in stored.columns]
    deletes = select_names(rows.where(is_marked_delete()), [*_KEY, *others])
    joined = stored.join(F.broadcast(deletes) if few else deletes, list(_KEY))
    # the table may have several records with a key
    greatest = F.max(F.struct(*map(quoted_name, ordering))).alias(_ORDERING)
    one_of_key = joined.groupBy(*_KEY).agg(greatest, *(F.first(quoted_name(name)).alias(name) for name in others))
    ordered = one_of_key.select(*_KEY, *map(quoted_name, others), f"{_ORDERING}.*", F.lit(True).alias(IS_DELETE))
    return rows.where(~is_marked_delete()).unionByName(cached.add(ordered, checked.deletes), allowMissingColumns=True)


def _columns_of_deletes(job: WriteJob, rows: DataFrame) -> Sequence[str]:
    """Return the columns that a delete needs besides `_KEY`: those of record key and partition path."""
    fields = (*job.spec.record_fields, *(field.name for field in job.spec.partition_fields))
    return list(dict.fromkeys(top_column(name, rows.columns) for name in fields))
