"""MERGE by record key, executed as an upsert of the source without a join with the table.

``ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *`` is equivalent to an upsert, which looks
up stored records file by file. There are two differences: a MERGE refuses source rows with the same key, but an upsert
merges them; and null keys equal nothing in SQL. The job that counts the rows of the upsert also detects such rows
(`pyhudi.spark.lookup.key_constraint`).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import IndexType, MergeMode
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.schema.meta_columns import is_reserved
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import convert_values
from pyhudi.spark.dml.target_table import TargetSnapshot
from pyhudi.spark.lookup.key_constraint import are_equal_as_key_text
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.sql.conditions.merge_condition import MergeSides, equated_columns
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.merge_settings import DELETE_FIELD

_PLAIN_KEYS = frozenset({KeyGenType.SIMPLE, KeyGenType.COMPLEX, KeyGenType.NON_PARTITION})
_PLAIN_MODES = frozenset({MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING})


def rows_to_upsert(source: DataFrame, target: TargetSnapshot) -> DataFrame | None:
    """Return the rows of a source with the columns of the table; None if a column is missing or has a reserved name."""
    names = target.schema.names
    sensitive = is_case_sensitive(source.sparkSession)
    source_columns = {name if sensitive else name.lower() for name in source.columns}
    table_columns = {name if sensitive else name.lower() for name in names}
    if not table_columns <= source_columns or any(map(is_reserved, source_columns)):
        return None
    values = convert_values(source, {name: F.col(quoted([name])) for name in names}, target.schema)
    return source.select(*(value.alias(name) for name, value in values.items()))


def joins_by_key(target: TargetSnapshot, on: object, alias: str, source: DataFrame, source_alias: str | None) -> bool:
    """Return True if a condition joins exactly the rows that an upsert considers versions of the same record.

    Args:
        target: The table.
        on: Condition of the MERGE.
        alias: Name of the table in the condition.
        source: The source, with the columns of the table.
        source_alias: Name of the source in the condition; None: unknown.
    """
    spec, merging = target.spec, target.merging
    index = target.opts.get_typed(options.INDEX_TYPE)
    plain = (
        isinstance(on, str)
        and has_plain_keys(spec)
        # With buckets, an upsert does not report which rows are new, and a row may be marked as a delete.
        and index is not IndexType.BUCKET
        # Such an upsert finds records in other partitions, which the condition does not join.
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
    sides = MergeSides.from_columns(alias, target.schema.names, source.columns, source_alias)
    if equated_columns(on, sides) != frozenset(name.lower() for name in names):
        return False
    kinds = {field.name.lower(): field.dataType for field in source.schema.fields}
    table_types = {field.name: field.dataType for field in target.schema.fields}
    return are_equal_as_key_text((table_types.get(name), kinds.get(name.lower())) for name in names)


def has_plain_keys(spec: KeySpec) -> bool:
    """Return True if record keys and partition paths are the plain texts of the values of their columns."""
    plain_paths = not spec.slash_dates and not spec.sql_timestamps
    return bool(spec.record_fields) and spec.keygen in _PLAIN_KEYS and plain_paths


def key_columns(target: TargetSnapshot) -> list[str]:
    """Return the columns of record key and partition path, in the order of the table's key."""
    partitions = [field.name for field in target.spec.partition_fields]
    return list(dict.fromkeys([*target.spec.record_fields, *partitions]))
