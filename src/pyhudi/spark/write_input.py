"""The user's DataFrame, made ready to be written: columns as the table has them, keys, one row per key."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.values import Operation
from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.evolution import EvolutionOptions, reconcile
from pyhudi.schema.meta import is_meta_column, remove_meta_columns
from pyhudi.schema.spark_json import from_spark_json
from pyhudi.schema.types import as_nullable, table_schema
from pyhudi.spark.keytext import quoted
from pyhudi.table.config import TableConfig
from pyhudi.write.columns import HELPER_COLUMNS
from pyhudi.write.operations import DELETING


def own_columns(df: DataFrame) -> DataFrame:
    """The frame without meta columns: a frame that was read from a Hudi table has them, and they are made anew.

    Raises:
        SchemaMismatchError: a column has a name that this library needs for itself, or there is no column at all.
    """
    names = [name for name in df.columns if not is_meta_column(name)]
    taken = sorted(set(names) & HELPER_COLUMNS)
    if taken:
        raise SchemaMismatchError(f"the column name {taken[0]!r} is reserved; rename the column")
    if not names:
        raise SchemaMismatchError("there are no columns to write")
    if len(names) == len(df.columns):
        return df
    return df.select(*(quoted([name]) for name in names))


def write_schema(
    df: DataFrame, table: pa.Schema | None, config: TableConfig, opts: Options, operation: Operation
) -> pa.Schema:
    """The table's own columns as files hold them from the write on.

    ``table`` are the table's columns now (None: nothing is known); a delete leaves them as they are. Partition columns
    that the table keeps out of its files are left out.

    Raises:
        SchemaMismatchError: incoming columns cannot become the table's columns.
    """
    incoming = _stored(from_spark_json(df.schema.json()), config)
    if table is None:
        return as_nullable(table_schema(incoming))
    now = _stored(remove_meta_columns(table), config)
    if operation in DELETING:
        return now
    partial = options.PARTIAL_UPDATE_SCHEMA
    evolution = EvolutionOptions(
        set_null_for_missing=opts.get_typed(options.SET_NULL_FOR_MISSING_COLUMNS) or opts.is_set(partial),
        reconcile=opts.get_typed(options.RECONCILE_SCHEMA),
        allow_column_drop=opts.get_typed(options.SCHEMA_ALLOW_COLUMN_DROP),
    )
    return reconcile(now, incoming, evolution)


def _stored(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    if not config.drop_partition_columns:
        return schema
    dropped = {field.name for field in config.partition_fields}
    return pa.schema([field for field in schema if field.name not in dropped])
