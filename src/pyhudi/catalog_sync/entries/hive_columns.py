"""Hive columns of a table."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import pyarrow as pa

from pyhudi.catalog_sync.catalogs.catalog_entries import CatalogColumn
from pyhudi.schema.converters.sql_types import nested_sql_type, sql_type
from pyhudi.schema.logical_types.blobs import BLOB_STRUCT, is_blob
from pyhudi.schema.logical_types.variants import VARIANT_STRUCT, is_variant
from pyhudi.schema.logical_types.vectors import is_vector
from pyhudi.schema.table_types import COMMENT

_UNKNOWN = "string"
"""Type of a partition column that the table does not have."""


def hive_columns(
    schema: pa.Schema, partition_fields: Collection[str], *, timestamps: bool, comments: bool
) -> tuple[tuple[CatalogColumn, ...], tuple[CatalogColumn, ...]]:
    """Return the columns of the files, and the partition columns.

    Args:
        schema: Columns of the table.
        partition_fields: Partition columns, in order.
        timestamps: Timestamps are timestamps; otherwise numbers.
        comments: Columns of the files have their comments; as in Apache Hudi, partition columns have none.
    """
    made = {
        field.name: CatalogColumn(
            field.name.lower(), hive_type(field.type, timestamps=timestamps), _comment(field) if comments else ""
        )
        for field in schema
    }
    data = tuple(column for name, column in made.items() if name not in partition_fields)
    types = {name: column.type for name, column in made.items()}
    return data, tuple(CatalogColumn(name.lower(), types.get(name, _UNKNOWN)) for name in partition_fields)


def hive_type(data_type: pa.DataType, *, timestamps: bool = True) -> str:
    """Return the Hive type of an Arrow type of a table.

    Args:
        data_type: The type.
        timestamps: As of `hive_columns`.
    """
    if is_blob(data_type) or is_variant(data_type):
        data_type = BLOB_STRUCT if is_blob(data_type) else VARIANT_STRUCT
    if is_vector(data_type):
        return "binary"
    if pa.types.is_timestamp(data_type):
        return "timestamp" if timestamps else "bigint"
    if pa.types.is_null(data_type):
        return "string"
    return nested_sql_type(data_type, partial(hive_type, timestamps=timestamps), str.lower) or sql_type(data_type)


def _comment(field: pa.Field) -> str:
    return str((field.metadata or {}).get(COMMENT, b"").decode())
