"""Checks of the columns of a write: types that files of the table cannot have, and partial updates."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import FileFormat, MergeMode, Operation, TableType
from pyhudi.errors import ConfigError, SchemaMismatchError, UnsupportedTableError
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_TEXT
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_TEXT
from pyhudi.schema.logical_types.vectors import is_vector, vector_text
from pyhudi.schema.name_resolution import top_column
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.settings.write_settings import partial_columns


def check_storable(config: TableConfig, schema: pa.Schema) -> None:
    """Refuse columns with vectors, blobs and variants in tables whose files cannot have them, nor in Apache Hudi 1.2.0.

    Raises:
        UnsupportedTableError: The base files are ORC files, changes are logged, in records that contain the rows, or
            the column is part of keys or partition paths, or orders records.
    """
    opaque = {field.name for field in schema if is_vector(field.type) or field.type in (BLOB, VARIANT)}
    roles = {
        "record key": config.record_keys,
        "ordering": config.ordering_fields,
        "partition": [field.name for field in config.partition_fields],
    }
    for role, fields in roles.items():
        for name in fields:
            if top_column(name, schema.names) in opaque:
                raise UnsupportedTableError(
                    f"the {role} field {name!r} is of a VECTOR, BLOB or VARIANT, whose values have no order and no text"
                )
    vectors = [f"column {f.name!r} is a {vector_text(f.type)}" for f in schema if is_vector(f.type)]
    names = {BLOB: BLOB_TEXT, VARIANT: VARIANT_TEXT}
    others = [f"column {f.name!r} is a {names[f.type]}" for f in schema if f.type in names]
    if (vectors or others) and config.base_file_format is FileFormat.ORC:
        raise UnsupportedTableError(
            f"{(vectors + others)[0]}, which ORC files cannot have; use {options.BASE_FILE_FORMAT.key}=PARQUET"
        )
    if vectors and config.cdc_enabled:
        raise UnsupportedTableError(
            f"{vectors[0]}, which logs of changes cannot have; create the table without hoodie.table.cdc.enabled"
        )


def check_dropped_partition_columns(config: TableConfig, schema: pa.Schema) -> None:
    """Refuse timestamps as partition columns of a new table whose files lack these columns.

    They would be read as the texts of their partition paths, and later timestamps be refused, because a string of one
    makes another path.

    Args:
        config: Properties of the table.
        schema: Columns of the new table, partition columns included.

    Raises:
        SchemaMismatchError: A partition column is a timestamp.
    """
    if not config.drop_partition_columns:
        return
    for name in (field.name for field in config.partition_fields):
        if name in schema.names and pa.types.is_timestamp(kind := schema.field(name).type):
            key = options.DROP_PARTITION_COLUMNS.key
            raise SchemaMismatchError(
                f"the partition column {name!r} is {kind}, and would be string in the table, whose files lack it "
                f"({key}=true), so that later rows would be refused; cast it to a date, or to a number, as by "
                f"unix_micros, or leave {key} out"
            )


def check_partial(config: TableConfig, operation: Operation, opts: Options, names: Iterable[str]) -> None:
    """Refuse partial updates that are not supported, or whose columns ``names`` differ from the declared ones.

    Raises:
        ConfigError: Partial updates require an upsert of a merge-on-read table from version 8 on, an index that keeps
            records in their partitions, and the ordering columns.
        SchemaMismatchError: The input has other columns.
    """
    changed = partial_columns(opts)
    if not changed:
        return
    key = options.PARTIAL_UPDATE_SCHEMA.key
    if config.table_type is not TableType.MERGE_ON_READ or config.version < 8 or operation is not Operation.UPSERT:
        raise ConfigError(
            f"{key}: partial updates require an upsert of a merge-on-read table of version 8 or later, but this "
            f"is {operation.value} of a {config.table_type} table of version {config.version}; pass all columns"
        )
    if opts.get_typed(options.INDEX_TYPE).is_global:
        raise ConfigError(
            f"{key}: with {options.INDEX_TYPE.key}={opts.text(options.INDEX_TYPE)} a record may move to another "
            "partition, which requires all its columns; pass all columns, or use the index SIMPLE or BLOOM"
        )
    ordered = config.merging.mode is MergeMode.EVENT_TIME_ORDERING
    tops = {top_column(name, changed) for name in config.merging.ordering_fields if ordered}
    if missing := sorted(tops - changed):
        raise ConfigError(
            f"{key} lacks the ordering column {', '.join(missing)}, without which every stored version would win "
            "against the update; add it"
        )
    other = sorted(changed.symmetric_difference(names))
    if other:
        raise SchemaMismatchError(
            f"{key} and the input differ in the columns {', '.join(other)}; they must be the same"
        )
