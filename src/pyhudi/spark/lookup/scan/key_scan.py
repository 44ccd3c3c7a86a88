"""Lookup of keys by a scan of the key columns of base files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegralType, StringType, StructField, StructType

from pyhudi.config import options
from pyhudi.config.enums import ReadEngine
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted, resolve
from pyhudi.spark.helper_columns import OLD_FILE_NAME, OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.keys.key_generator import jvm_zone, record_key
from pyhudi.spark.lookup.batch_summary import BatchSummary
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.scan.base_file_keys import base_rows, stored_types, with_file_no
from pyhudi.spark.lookup.scan.key_columns import TEXT, KeyColumns, extra_name, native_candidates
from pyhudi.spark.lookup.scan.key_search import KeySearch
from pyhudi.spark.lookup.scan.merged_slice_keys import merged_slice_rows
from pyhudi.spark.spark_types import spark_type
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.write.location_columns import ROW_POSITION

_INCOMING_KEY = "_pyhudi_incoming_key_"


def scan_locations(
    search: KeySearch, extra: tuple[str, ...], *, merge_logs: bool | None = None
) -> tuple[DataFrame, KeyColumns]:
    """Find keys by scanning the key columns of base files. Lazy.

    Args:
        search: The search. If the batch is small, only locations of its keys are returned; unless all partitions are
            searched, only those in the partitions of the rows.
        extra: Columns of the base rows to return.
        merge_logs: True: the slices of the files have log files, and their merged rows are scanned, which have no
            position. If not None, keys are compared as texts, so that both kinds of locations can be combined.

    Returns:
        Locations: key columns, file number, old partition, row position and the extra columns. And the columns by which
        keys are compared.
    """
    native = _native_types(search) if merge_logs is None else {}
    keys = KeyColumns.from_types(native, search.batch) if native else TEXT
    scanned = _scanned_keys(search, keys, native, extra, merge_logs=merge_logs)
    if search.broadcast:
        return _among_keys_of_batch(search, keys, scanned), keys
    return with_file_no(scanned.sparkSession, scanned, search.files), keys


def _scanned_keys(
    search: KeySearch,
    keys: KeyColumns,
    native: Mapping[str, DataType],
    extra: tuple[str, ...],
    *,
    merge_logs: bool | None,
) -> DataFrame:
    """Return the keys of the rows of the files that are within the ranges of the batch, with the file, row position and
    extra columns of each. ``native``: types of the key fields in the files; empty: keys are compared as texts."""
    rows, lookup, files = search.rows, search.lookup, search.files
    spark = rows.sparkSession
    more, exact = _stored_fields(search, extra, merge_logs=merge_logs)
    if native:
        fields = [StructField(name, kind) for name, kind in native.items()]
    elif lookup.virtual_keys:
        fields, same = _stored_fields(search, _key_columns(rows, lookup), merge_logs=merge_logs)
        exact = exact and same
    else:
        fields = [StructField(RECORD_KEY, StringType())]
    schema = StructType([*fields, *(field for field in more if field.name not in {f.name for f in fields})])
    if merge_logs:
        base = merged_slice_rows(spark, lookup, files, schema)
    else:
        engine = lookup.opts.get_typed(options.READ_ENGINE)
        base = base_rows(spark, lookup, files, schema, engine=engine if exact else ReadEngine.ARROW)
    base = _within(base, keys, search.batch)
    texts = [F.col(RECORD_KEY)]
    if native:
        texts = keys.columns_of(schema)
    elif lookup.virtual_keys:
        zone = jvm_zone(spark) if lookup.spec.consistent_timestamps else "UTC"
        texts = [record_key(schema, lookup.spec, zone)]
    extra_columns = [
        F.col(quoted([n])).cast(resolve(rows.schema, n, "ordering")[1]).alias(extra_name(n)) for n in extra
    ]
    reference = SEARCHED_FILE if SEARCHED_FILE in base.columns else OLD_FILE_NAME
    named = [text.alias(name) for text, name in zip(texts, keys.in_locations, strict=True)]
    return base.select(*named, reference, ROW_POSITION, *extra_columns)


def _among_keys_of_batch(search: KeySearch, keys: KeyColumns, scanned: DataFrame) -> DataFrame:
    """Return the locations of the keys of a batch, which are broadcast, among those of all keys of its files."""
    rows, files, batch = search.rows, search.files, search.batch
    spark = rows.sparkSession
    incoming = keys.columns_of(rows.schema)
    names = [f"{_INCOMING_KEY}{i}" for i in range(len(incoming))]
    ignore_partitions = search.all_partitions or len(batch.partitions) == 1
    searched_keys = rows.select(*(c.alias(n) for c, n in zip(incoming, names, strict=True)), PARTITION_PATH)
    searched_keys = F.broadcast(
        searched_keys.select(*names)
        if ignore_partitions
        else searched_keys.distinct()
        if batch.has_duplicates
        else searched_keys
    )
    same_key = reduce(
        and_, (F.col(location_column) == F.col(n) for location_column, n in zip(keys.in_locations, names, strict=True))
    )
    if ignore_partitions:
        return with_file_no(spark, scanned.join(searched_keys, same_key, "left_semi"), files)
    # A key may be in many partitions, and the partitions of files are cheap to know only after the join.
    locations = with_file_no(spark, scanned.join(searched_keys, same_key), files)
    return locations.where(F.col(OLD_PARTITION) == F.col(PARTITION_PATH)).drop(*names, PARTITION_PATH)


def _within(base: DataFrame, keys: KeyColumns, batch: BatchSummary) -> DataFrame:
    """Keep rows within the key ranges of the batch; Spark's readers skip row groups by them."""
    for name in keys.names:
        minimum, maximum = batch.ranges.get(name, (None, None))
        if name in base.columns and minimum is not None and maximum is not None:
            base = base.where(F.col(quoted([name])).between(F.lit(minimum), F.lit(maximum)))
    return base


def _native_types(search: KeySearch) -> dict[str, DataType]:
    """Return the types of the key fields in the files; empty if keys cannot be compared by them."""
    rows, lookup, files, batch = search.rows, search.lookup, search.files, search.batch
    names = native_candidates(rows.schema, lookup.spec)
    if not names or batch.nulls or not set(names) <= set(batch.ranges):
        return {}
    stored = stored_types(lookup.client, files, names)
    types: dict[str, DataType] = {}
    for name in names:
        data_types = stored[name]
        first = next(iter(data_types))
        if len(data_types) != 1 or first is None:
            return {}
        data_type = spark_type(first)
        row_type = rows.schema[name].dataType
        if data_type != row_type and not (isinstance(data_type, IntegralType) and isinstance(row_type, IntegralType)):
            return {}
        types[name] = data_type
    return types


def _key_columns(rows: DataFrame, lookup: KeyLookup) -> tuple[str, ...]:
    """Return the columns from which keys are made."""
    tops = (top_column(name, rows.columns) for name in lookup.spec.record_fields)
    return tuple(dict.fromkeys(tops))


def _stored_fields(
    search: KeySearch, names: tuple[str, ...], *, merge_logs: bool | None
) -> tuple[list[StructField], bool]:
    """Return columns with their types in the files, and whether these are the same in all files. Merged slices have the
    types of the table."""
    client = search.lookup.client
    if not names:
        return [], True
    if merge_logs:
        table = resolve_table_schema(TableSnapshot.load(client))
        stored = {n: {table.schema.field(n).type} if table and n in table.schema.names else set() for n in names}
    else:
        stored = stored_types(client, search.files, names)
    fields: list[StructField] = []
    exact = True
    for name in names:
        data_types: set[Any] = {data_type for data_type in stored[name] if data_type is not None}
        exact = exact and len(data_types) <= 1
        data_type = (
            spark_type(next(iter(data_types)))
            if len(data_types) == 1
            else resolve(search.rows.schema, name, "look-up")[1]
        )
        fields.append(StructField(name, data_type))
    return fields, exact
