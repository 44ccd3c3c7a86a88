"""Preparation of the user's DataFrame for a write: columns as in the table, keys, one row per key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    StringType,
    StructField,
    StructType,
)

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.evolution.write_evolution import EvolutionOptions, keeps_texts, promote, reconcile
from pyhudi.schema.meta_columns import is_reserved, remove_meta_columns
from pyhudi.schema.name_resolution import top_column
from pyhudi.schema.table_types import as_nullable, table_type, to_table_types
from pyhudi.spark.column_names import quoted, resolve, select_names
from pyhudi.spark.keys.value_formatter import value_text
from pyhudi.spark.spark_errors import failure
from pyhudi.spark.spark_types import null_columns, nullable_type, spark_schema, uncollated_type
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.column_checks import check_dropped_partition_columns, check_storable
from pyhudi.write.write_operations import DELETING


def own_columns(df: DataFrame, *, may_be_none: bool = False) -> DataFrame:
    """Return the frame without meta columns: a frame that was read from a Hudi table has them, and they are created
    again.

    Raises:
        SchemaMismatchError: A column has a reserved name, or one that differs from another only in
            case, or there are no columns.
    """
    names = checked_own_columns(from_spark_json(df.schema.json()), may_be_none=may_be_none).names
    if len(names) == len(df.columns):
        return df
    return select_names(df, names)


def checked_own_columns(incoming: pa.Schema, *, may_be_none: bool = False) -> pa.Schema:
    """Return the incoming columns without meta columns.

    Raises:
        SchemaMismatchError: As `own_columns`.
    """
    _check_names(incoming)
    data_columns = remove_meta_columns(incoming)
    reserved = sorted(filter(is_reserved, data_columns.names))
    if reserved:
        raise SchemaMismatchError(f"the column name {reserved[0]!r} is reserved; rename the column")
    if not data_columns.names and not may_be_none:
        raise SchemaMismatchError("there are no columns to write")
    return data_columns


def without_collations(df: DataFrame) -> DataFrame:
    """Return the frame with texts that are compared by their bytes: keys that are equal by a collation only, as ``a``
    and ``A``, are those of different records."""
    types = ((field.name, field.dataType, uncollated_type(field.dataType)) for field in df.schema.fields)
    collated = {name: F.col(quoted([name])).cast(plain) for name, data_type, plain in types if data_type != plain}
    if not collated or len(set(df.columns)) < len(df.columns):  # Names that come twice are refused later.
        return df
    return df.withColumns(collated)


def write_schema(
    incoming: pa.Schema, table: pa.Schema | None, config: TableConfig, operation: Operation, opts: Options
) -> pa.Schema:
    """Return the columns of the table as stored in files after the write.

    ``incoming`` are the columns of the rows, ``table`` the current columns of the table (None if unknown); a delete
    does not change them. Partition columns that are not stored in files are omitted.

    Raises:
        SchemaMismatchError: Incoming columns are incompatible with the columns of the table, or would change the type
            of one that makes record keys or partition paths, or decides between versions of a record; or as
            `check_dropped_partition_columns`.
        UnsupportedTableError: There are vectors or blobs, which the files of the table cannot have.
    """
    if table is None:
        check_dropped_partition_columns(config, incoming)
    else:
        _keep_texts(remove_meta_columns(table), incoming, config, opts)
    incoming = _stored(incoming, config)
    check_types(incoming if table is None else pa.schema([]))
    check_storable(config, pa.schema([*incoming, *(table or ())]))
    if table is None:
        return as_nullable(to_table_types(incoming))
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
    _keep_deciding_columns(now, reconciled, config, opts)
    return reconciled


def unused_by_deletes(incoming: pa.Schema, table: pa.Schema, config: TableConfig, opts: Options) -> list[str]:
    """Return the columns with ordering fields of other types than the table's, which rows of a delete by key can do
    without: it wins regardless of ordering values.

    Args:
        incoming: Columns of the rows.
        table: Columns of the table.
        config: Properties of the table.
        opts: Options of the write.
    """
    before, new = (dict(_leaves(pa.struct(list(schema)))) for schema in (table, incoming))
    roles = config.columns_by_role(opts)
    unlike = {
        top_column(name, incoming.names)
        for name in roles["ordering"]
        if name in before and name in new and not keeps_texts(table_type(before[name], name), table_type(new[name]))
    }
    keying = (top_column(name, incoming.names) for name in (*roles["record key"], *roles["partition path"]))
    return sorted(unlike.difference(keying))


def as_in_table(df: DataFrame, fields: Iterable[str], schema: pa.Schema) -> DataFrame:
    """Return the rows with the table's types of some fields, converted as
    `pyhudi.schema.evolution.schema_projection.conform` will convert them for the files. Lazy; without a difference in
    types, the rows are returned as they are.

    Evaluation fails on a value that does not fit, with SchemaMismatchError, as the conversion for the files does.

    Args:
        df: Rows to write.
        fields: Names of fields; dots separate those of structs. Fields that the table or the rows lack are skipped.
        schema: The table's columns.
    """
    table = spark_schema(schema)
    for name in dict.fromkeys(fields):
        top, *inner = [name] if name in df.columns else name.split(".")
        if top not in df.columns or top not in table.names:
            continue
        (_, incoming_type), (_, stored_type) = resolve(df.schema, name, "record"), resolve(table, name, "record")
        if incoming_type == stored_type or not _is_promoted(incoming_type, stored_type):
            continue
        value = _converted([top, *inner], incoming_type, stored_type)
        df = df.withColumn(top, F.col(quoted([top])).withField(quoted(inner), value) if inner else value)
    return df


def whole_rows(df: DataFrame, schema: pa.Schema) -> DataFrame:
    """Return the rows with all columns of the table, of its types, null where the rows lack them. Lazy.

    Nothing inside of columns is required, so that they can take stored values.
    """
    missing = [field for field in spark_schema(schema).fields if field.name not in df.columns]
    rows = as_in_table(df, schema.names, schema)
    kinds = {field.name: (field.dataType, nullable_type(field.dataType)) for field in rows.schema.fields}
    cast = {name: F.col(quoted([name])).cast(wide) for name, (kind, wide) in kinds.items() if kind != wide}
    return rows.withColumns(cast | null_columns(missing))


def _is_promoted(incoming_type: DataType, stored_type: DataType) -> bool:
    """Return True if values of a type may be written to columns of the other: rows of a delete may have any type."""
    fields = StructType([StructField("incoming", incoming_type), StructField("table", stored_type)])
    types = from_spark_json(fields.json())
    incoming, table = (table_type(kind) for kind in types.types)
    promoted = promote(table, incoming)
    return incoming != table and promoted is not None and bool(promoted == table)


def _converted(parts: list[str], incoming_type: DataType, stored_type: DataType) -> Column:
    name = quoted(parts)
    column = F.col(name)
    if isinstance(stored_type, StringType) and not isinstance(incoming_type, BinaryType):
        return value_text(column, incoming_type, name, None)
    # a float becomes the number of the same text
    source = f"cast({name} as string)" if isinstance(incoming_type, FloatType) else name
    # also without ANSI mode no value may silently become null
    value = F.expr(f"try_cast({source} as {stored_type.simpleString()})")
    if not isinstance(stored_type, (DateType, DecimalType)):
        return value
    message = F.concat(
        F.lit("cannot convert the value '"),
        column.cast("string"),
        F.lit(
            f"' of column {'.'.join(parts)!r} from {incoming_type.simpleString()} to {stored_type.simpleString()}; "
            "correct it"
        ),
    )
    refused = failure(SchemaMismatchError, message).cast(stored_type)
    return F.when(column.isNotNull() & value.isNull(), refused).otherwise(value)


def _keep_texts(now: pa.Schema, incoming: pa.Schema, config: TableConfig, opts: Options) -> None:
    """Reject types that would change those of key, partition and ordering columns: the rows of the table would keep
    their keys and paths, and the same values would make other ones."""
    before, new = (dict(_leaves(pa.struct(list(schema)))) for schema in (now, incoming))
    for role, names in config.columns_by_role(opts).items():
        for name in names:
            if name not in before or name not in new or pa.types.is_null(new[name]):
                continue
            old, changed = table_type(before[name], name), table_type(new[name], name)
            if keeps_texts(old, changed):
                continue
            raise SchemaMismatchError(
                f"column {name!r} is {old} in the table and {changed} in the incoming rows. It is one of the table's "
                f"{role} fields, whose type cannot change (except int to long); cast it to {old}"
            )


def _keep_deciding_columns(now: pa.Schema, then: pa.Schema, config: TableConfig, opts: Options) -> None:
    """Reject dropping a column by which versions of a record are merged."""
    before, after = ({path for path, _ in _leaves(pa.struct(list(schema)), inner=True)} for schema in (now, then))
    for role, names in config.deciding_columns(opts).items():
        dropped = [name for name in names if name in before and name not in after]
        if dropped:
            raise SchemaMismatchError(
                f"the incoming rows lack the column {dropped[0]!r}, the table's {role} column, which "
                f"{options.SCHEMA_ALLOW_COLUMN_DROP.key}=true cannot drop; add the column"
            )


def check_types(schema: pa.Schema) -> None:
    """Reject columns without a type, at any depth, which a new table cannot have.

    Raises:
        SchemaMismatchError: The message has one of them.
    """
    for path, kind in _leaves(pa.struct(list(schema))):
        if pa.types.is_null(kind):
            raise SchemaMismatchError(
                f"the column {path!r} has no type (all nulls), which a new table requires; cast it, for example "
                "lit(None).cast('string'), CAST(NULL AS STRING) in SQL"
            )


def _check_names(schema: pa.Schema) -> None:
    """Reject columns of one name, also if it differs in case: Spark does not distinguish them, and cannot read the
    files."""
    seen: dict[str, str] = {}
    for path, _ in _leaves(pa.struct(list(schema)), inner=True):
        other = seen.get(path.lower())
        if other == path:
            raise SchemaMismatchError(f"there are two columns {path!r}; rename or drop one of them")
        if other is not None:
            raise SchemaMismatchError(
                f"the column names {other!r} and {path!r} differ only in case; rename one of the columns"
            )
        seen[path.lower()] = path


def _leaves(data_type: pa.DataType, path: str = "", *, inner: bool = False) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the dotted names and types of the leaves of a type; ``inner``: those of nested structs too."""
    if path and (inner or not data_type.num_fields):
        yield path, data_type
    for i in range(data_type.num_fields):
        yield from _leaves(data_type.field(i).type, f"{path}.{data_type.field(i).name}".lstrip("."), inner=inner)


def _stored(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    if not config.drop_partition_columns:
        return schema
    dropped = {field.name for field in config.partition_fields}
    return pa.schema([field for field in schema if field.name not in dropped])
