"""Changes of partitions: a row is deleted at its old location and inserted at the new one."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.write.row_changes import STORED_PATH
from pyhudi.write.location_columns import DELETE, ROW

_OLD, _NEW = "_pyhudi_old", "_pyhudi_new"


def split_partition_changes(
    rows: DataFrame,
    target: TargetTable,
    own: Mapping[str, Column],
    deleted: Column,
    cached: CachedFrames,
    stored: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Split changes that move a row to another partition into a delete, with the stored values, and a new record.

    Args:
        rows: Rows from which values are computed, with the columns of `TargetTable.rows`.
        target: The table.
        own: New values of all its columns.
        deleted: True for deleted rows; rows whose new values mark them as deletes are deleted, too.
        cached: Persists the values, which are evaluated more than once.
        stored: Stored values by column; None: the columns of the same names.

    Returns:
        The changes.
    """
    helpers = [F.col(name) for name in target.helpers]
    before = stored or {name: F.col(quoted([name])) for name in own}
    new = [value.alias(name) for name, value in own.items()]
    old = F.struct(*(before[name].alias(name) for name in own)).alias(_OLD)
    values = rows.select(*new, *helpers, old, deleted.alias(DELETE))
    values = cached.add(values.withColumn(DELETE, F.col(DELETE) | is_delete(values.schema, target.merging)))
    keyed = with_keys(values, target.spec, "")
    names = list(own)
    moved = F.col(STORED_PATH).isNotNull() & ~F.col(DELETE) & (F.col(STORED_PATH) != F.col(PARTITION_PATH))
    stays = [F.col(name) for name in target.helpers]
    goes = [F.lit(None).cast("bigint" if name == ROW else "string").alias(name) for name in target.helpers]
    fields = [F.col(quoted([name])) for name in names]
    back = [F.col(quoted([_OLD, name])).alias(name) for name in names]
    as_is = F.struct(*fields, *stays, F.col(DELETE).alias(DELETE))
    there = F.struct(*fields, *goes, F.lit(False).alias(DELETE))
    gone = F.struct(*back, *stays, F.lit(True).alias(DELETE))
    # A global index finds the record at its old location, and moves it if its options require that.
    both = F.array(there) if target.opts.get_typed(options.INDEX_TYPE).is_global else F.array(gone, there)
    versions = F.when(moved, both).otherwise(F.array(as_is))
    every = keyed.select(F.explode(versions).alias(_NEW))
    return every.select(*(F.col(quoted([_NEW, name])).alias(name) for name in (*names, *target.helpers, DELETE)))
