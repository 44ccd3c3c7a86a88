"""MERGE by the record key: an upsert of the source, which needs no join with the table.

``ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *`` says what an upsert does, which finds
the stored records while it writes, file by file. The two differ for source rows of one key, which a MERGE refuses and
an upsert merges, and for null keys, which equal nothing in SQL. A job over the source looks for such rows first.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import IndexType, MergeMode
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.spark.dml.target import Target
from pyhudi.spark.keys.key_text import quoted
from pyhudi.sql.join_conditions import equated_columns
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.merge_settings import DELETE_FIELD, with_delete_marker

_PLAIN_KEYS = frozenset({KeyGenType.SIMPLE, KeyGenType.COMPLEX, KeyGenType.NON_PARTITION})
_PLAIN_MODES = frozenset({MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING})
# types of which equal values, and no others, are the same text in a key
_EXACT = (T.StringType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType, T.BooleanType)
# texts that keys have instead of null and empty values, and partitions instead of null
_PLACEHOLDERS = ("", "__null__", "__empty__", "__HIVE_DEFAULT_PARTITION__", "default")


def joins_by_key(target: Target, on: object, alias: str, source: DataFrame) -> bool:
    """Return whether a condition joins rows that an upsert takes for versions of one record, and no others.

    Args:
        target: The table.
        on: The condition of the MERGE.
        alias: The table's name in it.
        source: The source, with the columns of the table.
    """
    config, spec, opts = target.client.config, target.spec, target.opts
    merging = with_delete_marker(config.merging_for(opts.get_typed(options.PAYLOAD_CLASS)), opts)
    index = opts.get_typed(options.INDEX_TYPE)
    plain = (
        isinstance(on, str)
        and bool(spec.record_fields)
        and spec.keygen in _PLAIN_KEYS
        and not spec.slash_dates
        # an upsert does not say which rows of a bucket are new, and a row may tell an upsert that it is a delete
        and index is not IndexType.BUCKET
        # a record of another partition is none that the condition joins, but one that such an upsert finds
        and not (index.is_global and spec.partition_fields)
        and IS_DELETED not in target.schema.names
        and DELETE_FIELD not in merging.properties
        and merging.mode in _PLAIN_MODES
        and merging.partial_update_mode is None
    )
    if not plain:
        return False
    assert isinstance(on, str)
    names = key_columns(target)
    if equated_columns(on, alias) != frozenset(name.lower() for name in names):
        return False
    kinds = {field.name.lower(): field.dataType for field in source.schema.fields}
    own = {field.name: field.dataType for field in target.schema.fields}
    return all(isinstance(own.get(n), _EXACT) and own[n] == kinds.get(n.lower()) for n in names)


def key_columns(target: Target) -> list[str]:
    """Return the columns of record key and partition path, in the order of the table's key."""
    partitions = [field.name for field in target.spec.partition_fields]
    return list(dict.fromkeys([*target.spec.record_fields, *partitions]))


def distinct_rows(rows: DataFrame, target: Target) -> int | None:
    """Count the rows of a source, as the table's columns. Runs a Spark job.

    Returns:
        Number of rows; None if two have the same key, or one has a key that is not the text of its value: those are to
        be joined with the table.
    """
    names = key_columns(target)
    counted = rows.groupBy(*(quoted([name]) for name in names)).agg(F.count(F.lit(1)).alias("_pyhudi_count"))
    odd = reduce(or_, [_is_odd(F.col(quoted([name])), target.schema[name].dataType) for name in names])
    found = counted.agg(F.sum("_pyhudi_count"), F.max("_pyhudi_count"), F.max(odd)).first()
    assert found is not None
    count, most, is_odd = found
    return None if is_odd or (most or 0) > 1 else count or 0


def _is_odd(column: Column, kind: T.DataType) -> Column:
    found = column.isNull()
    return found | column.isin(*_PLACEHOLDERS) if isinstance(kind, T.StringType) else found
