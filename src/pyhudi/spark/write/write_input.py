"""Preparation of the user's DataFrame for a write: columns as in the table, keys, one row per key."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.schema_evolution import EvolutionOptions, reconcile
from pyhudi.schema.spark_json import from_spark_json
from pyhudi.schema.table_types import as_nullable, table_schema
from pyhudi.spark.keys.key_text import quoted
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.location_columns import HELPER_COLUMNS
from pyhudi.write.write_operations import DELETING


def own_columns(df: DataFrame, *, may_be_none: bool = False) -> DataFrame:
    """Return the frame without meta columns: a frame that was read from a Hudi table has them, and they are created
    again.

    Raises:
        SchemaMismatchError: A column has a reserved name, or one that differs from another only in
            case, or there are no columns.
    """
    names = own_schema(from_spark_json(df.schema.json()), may_be_none=may_be_none).names
    if len(names) == len(df.columns):
        return df
    return df.select(*(quoted([name]) for name in names))


def own_schema(incoming: pa.Schema, *, may_be_none: bool = False) -> pa.Schema:
    """Return the incoming columns without meta columns.

    Raises:
        SchemaMismatchError: As `own_columns`.
    """
    _check_names(incoming)
    own = remove_meta_columns(incoming)
    taken = sorted(set(own.names) & HELPER_COLUMNS)
    if taken:
        raise SchemaMismatchError(f"the column name {taken[0]!r} is reserved; rename the column")
    if not own.names and not may_be_none:
        raise SchemaMismatchError("there are no columns to write")
    return own


def write_schema(
    incoming: pa.Schema, table: pa.Schema | None, config: TableConfig, opts: Options, operation: Operation
) -> pa.Schema:
    """Return the columns of the table as stored in files after the write.

    ``incoming`` are the columns of the rows, ``table`` the current columns of the table (None if unknown); a delete
    does not change them. Partition columns that are not stored in files are omitted.

    Raises:
        SchemaMismatchError: Incoming columns are incompatible with the columns of the table.
    """
    incoming = _stored(incoming, config)
    _check_types(incoming if table is None else pa.schema([]))
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
    reconciled = reconcile(now, incoming, evolution)
    _keep_ordering(now, reconciled, config)
    return reconciled


def _keep_ordering(now: pa.Schema, then: pa.Schema, config: TableConfig) -> None:
    """Reject dropping an ordering column: later upserts could not determine the latest version of a record."""
    before, after = ({path for path, _ in _leaves(pa.struct(list(schema)), inner=True)} for schema in (now, then))
    gone = [name for name in config.ordering_fields if name in before and name not in after]
    if gone:
        raise SchemaMismatchError(
            f"the incoming rows lack the column {gone[0]!r}, an ordering column of the table, which "
            f"{options.SCHEMA_ALLOW_COLUMN_DROP.key}=true cannot drop; add the column"
        )


def _check_types(schema: pa.Schema) -> None:
    """Reject columns without a type, at any depth, which a new table cannot have."""
    for path, kind in _leaves(pa.struct(list(schema))):
        if pa.types.is_null(kind):
            raise SchemaMismatchError(
                f"the column {path!r} has no type (all nulls), which a new table requires; cast it, for example "
                "lit(None).cast('string')"
            )


def _check_names(schema: pa.Schema) -> None:
    """Reject columns whose names differ only in case: Spark does not distinguish them, and cannot read the files."""
    seen: dict[str, str] = {}
    for path, _ in _leaves(pa.struct(list(schema)), inner=True):
        if path.lower() in seen:
            raise SchemaMismatchError(
                f"the column names {seen[path.lower()]!r} and {path!r} differ only in case; rename one of the columns"
            )
        seen[path.lower()] = path


def _leaves(kind: pa.DataType, path: str = "", *, inner: bool = False) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the dotted names and types of the leaves of a type; ``inner``: those of nested structs too."""
    if path and (inner or not kind.num_fields):
        yield path, kind
    for i in range(kind.num_fields):
        yield from _leaves(kind.field(i).type, f"{path}.{kind.field(i).name}".lstrip("."), inner=inner)


def _stored(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    if not config.drop_partition_columns:
        return schema
    dropped = {field.name for field in config.partition_fields}
    return pa.schema([field for field in schema if field.name not in dropped])
