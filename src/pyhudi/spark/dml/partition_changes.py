"""Rows that change their partition: deleted at the old location, new at the other."""

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
    """Return changes of which those that go to another partition are two: a delete, with the values that the row had,
    and a new record.

    Args:
        rows: What the values are computed of, with the columns of `TargetTable.rows`.
        target: The table.
        own: The new value of each of its columns.
        deleted: Whether a row is deleted; so is one whose new values mark it as a delete.
        cached: Keeps the values, which are needed more than once.
        stored: The values before, by column; None: the columns of that name.
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
    # a global index finds the record at its old location, and moves it or not as its options say
    both = F.array(there) if target.opts.get_typed(options.INDEX_TYPE).is_global else F.array(gone, there)
    versions = F.when(moved, both).otherwise(F.array(as_is))
    every = keyed.select(F.explode(versions).alias(_NEW))
    return every.select(*(F.col(quoted([_NEW, name])).alias(name) for name in (*names, *target.helpers, DELETE)))
