"""Checks of records that a global index moves, before they are merged with the stored ones."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.config import options
from pyhudi.config.enums import PartialUpdateMode
from pyhudi.errors import UnsupportedTableError
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.table_types import DEFAULT, nullable_type, table_type
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.partition_updates.global_tagging import moving_option
from pyhudi.table.table_snapshot import TableSnapshot


def check_merge_of_moved_records(lookup: KeyLookup, rows: DataFrame) -> None:
    """Check that whole stored records can be merged with incoming ones.

    Raises:
        UnsupportedTableError: Files lack the partition columns, the table has defaults that partial updates ignore, or
            a nested column has other fields than in the table.
    """
    why = _obstacle(lookup, rows)
    if why is not None:
        raise UnsupportedTableError(
            f"records that move to another partition cannot be merged with the stored ones {why}; set the option "
            f"{moving_option(lookup).key}=false to update them where they are"
        )


def _obstacle(lookup: KeyLookup, rows: DataFrame) -> str | None:
    if lookup.client.config.drop_partition_columns:
        return f"in a table whose files lack the partition columns ({options.DROP_PARTITION_COLUMNS.key}=true)"
    table = resolve_table_schema(TableSnapshot.load(lookup.client.reload()))
    if table is None:
        return None
    stored = {field.name: field for field in table.schema}
    if lookup.merging.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS:
        named = [name for name, field in stored.items() if DEFAULT in (field.metadata or {})]
        if named:
            return f"by partial updates that ignore default values, which the column {named[0]!r} has"
    for field in from_spark_json(rows.schema.json()):
        stored_type = stored.get(field.name)
        if stored_type is None or not pa.types.is_nested(stored_type.type):
            continue
        if nullable_type(table_type(field.type, field.name)) != nullable_type(stored_type.type):
            return f"if a nested column has other fields, or in another order, than in the table ({field.name!r})"
    return None
