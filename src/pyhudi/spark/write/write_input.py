"""The user's DataFrame, made ready to be written: columns as the table has them, keys, one row per key."""

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
    """The frame without meta columns: a frame that was read from a Hudi table has them, and they are made anew.

    Raises:
        SchemaMismatchError: a column has a name that this library needs for itself, or that another one has, but for
            case, or there is no column at all.
    """
    names = own_schema(from_spark_json(df.schema.json()), may_be_none=may_be_none).names
    if len(names) == len(df.columns):
        return df
    return df.select(*(quoted([name]) for name in names))


def own_schema(incoming: pa.Schema, *, may_be_none: bool = False) -> pa.Schema:
    """The incoming columns without meta columns.

    Raises:
        SchemaMismatchError: as `own_columns`.
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
    """The table's own columns as files hold them from the write on.

    ``incoming`` are the columns of the rows, ``table`` are the table's columns now (None: nothing is known); a delete
    leaves them as they are. Partition columns that the table keeps out of its files are left out.

    Raises:
        SchemaMismatchError: incoming columns cannot become the table's columns.
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
    found = reconcile(now, incoming, evolution)
    _keep_ordering(now, found, config)
    return found


def _keep_ordering(now: pa.Schema, then: pa.Schema, config: TableConfig) -> None:
    """Refuse to drop a column by which records are ordered: no upsert could say any more which version wins."""
    before, after = ({path for path, _ in _leaves(pa.struct(list(schema)), inner=True)} for schema in (now, then))
    gone = [name for name in config.ordering_fields if name in before and name not in after]
    if gone:
        raise SchemaMismatchError(
            f"the incoming rows lack the column {gone[0]!r}, by which the table orders the versions of a record, so "
            f"that {options.SCHEMA_ALLOW_COLUMN_DROP.key}=true cannot drop it; add it"
        )


def _check_types(schema: pa.Schema) -> None:
    """Refuse columns without a type, which a new table cannot have, at any depth."""
    for path, kind in _leaves(pa.struct(list(schema))):
        if pa.types.is_null(kind):
            raise SchemaMismatchError(
                f"the column {path!r} has no type (all nulls), which a new table needs; cast it, for example "
                "lit(None).cast('string')"
            )


def _check_names(schema: pa.Schema) -> None:
    """Refuse columns whose names differ by case alone: Spark takes them for one, and cannot read the files."""
    seen: dict[str, str] = {}
    for path, _ in _leaves(pa.struct(list(schema)), inner=True):
        if path.lower() in seen:
            raise SchemaMismatchError(
                f"the columns {seen[path.lower()]!r} and {path!r} have one name, but for case; rename one of them"
            )
        seen[path.lower()] = path


def _leaves(kind: pa.DataType, path: str = "", *, inner: bool = False) -> Iterator[tuple[str, pa.DataType]]:
    """The dotted names and types of what a type is made of; ``inner``: those between, too."""
    if path and (inner or not kind.num_fields):
        yield path, kind
    for i in range(kind.num_fields):
        yield from _leaves(kind.field(i).type, f"{path}.{kind.field(i).name}".lstrip("."), inner=inner)


def _stored(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    if not config.drop_partition_columns:
        return schema
    dropped = {field.name for field in config.partition_fields}
    return pa.schema([field for field in schema if field.name not in dropped])
