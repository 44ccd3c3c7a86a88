"""Record keys and partition paths of a DataFrame, as Spark column expressions.

Nothing here starts a Spark job, except for a query for the time zone of the JVM if the result depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegralType, StringType, StructType, TimestampType

from pyhudi.errors import SchemaMismatchError
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, EMPTY_KEY_PART, NULL_KEY_PART, KeySpec
from pyhudi.keygen.partition_path_formatter import invalid_folder_cure
from pyhudi.keygen.timestamp_settings import TimestampSpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import resolve
from pyhudi.spark.keys.key_errors import key_failure
from pyhudi.spark.keys.registered_generator import (
    check_registered_generator,
    registered_partition_path,
    registered_record_key,
)
from pyhudi.spark.keys.timestamp_formatter import time_text
from pyhudi.spark.keys.value_formatter import has_empty_text, sql_timestamp_text, url_encoded, value_text
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, PartitionKind

_jvm_zones: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
_ROW_BITS = 33  # monotonically_increasing_id: partition in the upper bits, row in the lower


def with_keys(df: DataFrame, spec: KeySpec, instant: str) -> DataFrame:
    """Return *df* with ``_hoodie_record_key`` and ``_hoodie_partition_path``; existing columns of these names are
    replaced.

    Evaluation fails on the first row whose key is null or empty (all of its parts, for keys of several
    fields), whose time text matches no input pattern or whose partition path is not a valid folder, with RecordKeyError
    (`pyhudi.spark.keys.key_errors`). Generated keys (``<instant>_<partition>_<row>``) follow the partitioning
    of *df*: the result must be evaluated once, or persisted, if another evaluation may return another order.

    Raises:
        RecordKeyError: A key field is missing, or has a type that keys cannot have.
        SchemaMismatchError: A partition field is missing.
    """
    zone = _zone(df, spec)
    key = _auto_key(instant) if spec.auto_keys else record_key(df.schema, spec, zone)
    return df.withColumns({RECORD_KEY: key, PARTITION_PATH: partition_path(df.schema, spec, zone)})


def check_key_columns(df: DataFrame, spec: KeySpec) -> None:
    """Check that *df* has the columns of record keys and partition paths, with types that these can have.

    Raises:
        RecordKeyError: A key field is missing, or has a type that keys cannot have.
        SchemaMismatchError: A partition field is missing.
        ConfigError: A registered key generator uses other columns, or does not make text.
    """
    check_registered_generator(df, spec)
    with_keys(df, spec, "")  # Spark resolves the columns, too, but evaluates nothing.


def partition_path_of(df: DataFrame, spec: KeySpec) -> Column:
    """Return the partition path of the rows of *df* as a column; evaluation fails as that of `with_keys`.

    Raises:
        SchemaMismatchError: A partition field is missing.
    """
    return partition_path(df.schema, spec, _zone(df, spec))


def record_key(schema: StructType, spec: KeySpec, zone: str = "UTC") -> Column:
    """Return the record key as an expression over columns of *schema*; evaluation fails where it is null or empty."""
    if spec.key_class is not None:
        return registered_record_key(spec.key_class, spec.unset_key_message)
    key, unset = _key_text(schema, spec, zone)
    return F.when(unset, key_failure(spec.unset_key_message)).otherwise(key)


def has_recomputable_keys(schema: StructType, spec: KeySpec) -> bool:
    """Return True if the record keys that a table stores certainly are the texts of its key columns: strings and whole
    numbers, which all releases and writers of Apache Hudi represent alike, if it is not a complex key of one field.

    Args:
        schema: Columns of the table, none of which has had another type.
        spec: Specification of its keys.
    """
    one_complex = spec.keygen is KeyGenType.COMPLEX and len(spec.record_fields) == 1
    if spec.auto_keys or spec.key_class is not None or one_complex:
        return False
    types = {field.name: field.dataType for field in schema.fields}
    of_path = {field.name for field in spec.partition_fields}  # Queries may take their values from paths.
    return of_path.isdisjoint(spec.record_fields) and all(
        isinstance(types.get(name), (StringType, IntegralType)) for name in spec.record_fields
    )


def stored_record_key(schema: StructType, spec: KeySpec) -> Column:
    """Return the record key of stored rows as an expression over their columns, see `has_recomputable_keys`.

    It cannot fail, since each stored row has a key. So Spark evaluates it only for rows that are not left out later, by
    a join for example.
    """
    return _key_text(schema, spec, "UTC")[0]


def _key_text(schema: StructType, spec: KeySpec, zone: str) -> tuple[Column, Column]:
    """Return the record key, and whether it is null or empty."""
    consistent = zone if spec.consistent_timestamps else None
    texts: list[Column] = []
    unset: list[Column] = []
    for name in spec.record_fields:
        column, kind = resolve(schema, name, "record key")
        text = value_text(column, kind, name, consistent)
        empty = (text == "") if has_empty_text(kind) else None
        unset.append(column.isNull() if empty is None else F.coalesce(empty, F.lit(True)))
        if spec.named_parts:
            part = F.coalesce(text, F.lit(NULL_KEY_PART))
            if empty is not None:
                part = F.when(empty, EMPTY_KEY_PART).otherwise(part)
            text = F.concat(F.lit(f"{name}:"), part)
        texts.append(text)
    key = texts[0] if len(texts) == 1 else F.concat_ws(",", *texts)
    return key, reduce(and_, unset)


def partition_path(schema: StructType, spec: KeySpec, zone: str = "UTC") -> Column:
    """Return the partition path as an expression over columns of *schema*; ``""`` if the table is not partitioned."""
    if spec.path_class is not None:
        return _valid_folder(registered_partition_path(spec.path_class), replace(spec, url_encode=False))
    if not spec.partition_fields:
        return F.lit("")
    segments = [_segment(schema, spec, field, zone) for field in spec.partition_fields]
    path = segments[0] if len(segments) == 1 else F.concat_ws("/", *segments)
    is_checked = any(_may_be_invalid(schema, spec, field) for field in spec.partition_fields)
    return _valid_folder(path, spec) if is_checked else path


def _may_be_invalid(schema: StructType, spec: KeySpec, field: PartitionField) -> bool:
    """Return True if some values of a field have texts that are no names of folders."""
    _, kind = resolve(schema, field.name, "partition path", SchemaMismatchError)
    if field.kind is PartitionKind.TIMESTAMP or isinstance(kind, StringType):
        return True
    return spec.consistent_timestamps and isinstance(kind, TimestampType)  # 2024-01-02 03:04:05.0


def _valid_folder(path: Column, spec: KeySpec) -> Column:
    """Return the path; evaluation fails where it is not a folder of the table."""
    bad = path.rlike(spec.invalid_folder)
    told = f"' is not a valid folder name; {invalid_folder_cure(url_encode=spec.url_encode)}"
    return F.when(bad, key_failure("the partition path '", path, told)).otherwise(path)


def _segment(schema: StructType, spec: KeySpec, field: PartitionField, zone: str) -> Column:
    column, kind = resolve(schema, field.name, "partition path", SchemaMismatchError)
    if spec.sql_timestamps and field.kind is PartitionKind.SIMPLE and isinstance(kind, TimestampType):
        text = F.coalesce(sql_timestamp_text(column, zone), F.lit(DEFAULT_PARTITION))  # never encoded again
        return F.concat(F.lit(f"{field.name}="), text) if spec.hive_style else text
    if field.kind is PartitionKind.TIMESTAMP:
        assert spec.timestamp is not None
        text = time_text(column, kind, spec.timestamp, field.name, consistent=spec.consistent_timestamps, jvm_zone=zone)
        unreadable = F.concat(
            F.lit(f"the partition field {field.name!r} has the value '"),
            column.cast("string"),
            F.lit(f"', which {_why_unreadable(spec.timestamp)}"),
        )
        text = F.coalesce(text, key_failure(F.coalesce(unreadable, F.lit("a null time"))))
    else:
        text = value_text(column, kind, field.name, zone if spec.consistent_timestamps else None)
        if has_empty_text(kind):
            text = F.when(text != "", text)
        text = F.coalesce(text, F.lit(DEFAULT_PARTITION))
    if spec.url_encode:
        text = url_encoded(text)
    if spec.slash_dates:
        text = F.translate(text, "-", "/")
    return F.concat(F.lit(f"{field.name}="), text) if spec.hive_style else text


def _why_unreadable(spec: TimestampSpec) -> str:
    if spec.unit_ms is None:
        return "matches no pattern of hoodie.keygen.timebased.input.dateformat"
    micros = "" if spec.type == "EPOCHMICROSECONDS" else "; timestamps count as microseconds, EPOCHMICROSECONDS"
    return f"is out of range with hoodie.keygen.timebased.timestamp.type={spec.type}{micros}"


def _auto_key(instant: str) -> Column:
    row = F.monotonically_increasing_id()
    partition = F.shiftright(row, _ROW_BITS)
    number = row.bitwiseAND(F.lit((1 << _ROW_BITS) - 1))
    return F.concat_ws("_", F.lit(instant), partition.cast("string"), number.cast("string"))


def _zone(df: DataFrame, spec: KeySpec) -> str:
    """Return the time zone of the JVM if keys or partition paths depend on it."""
    return jvm_zone(df.sparkSession) if _needs_zone(df.schema, spec) else "UTC"


def _needs_zone(schema: StructType, spec: KeySpec) -> bool:
    """Return True if any key or path depends on the time zone of the JVM."""
    if spec.timestamp is not None and (spec.timestamp.output_zone is None or spec.timestamp.input_zone is None):
        return True
    if spec.sql_timestamps:
        return True
    if not spec.consistent_timestamps:
        return False
    names = [*spec.record_fields, *(field.name for field in spec.partition_fields)]
    top = {top_column(name, schema.names) for name in names}
    return any("timestamp" in field.dataType.simpleString() for field in schema.fields if field.name in top)


def jvm_zone(spark: SparkSession) -> str:
    """Return the default time zone of Spark's JVM, which Apache Hudi uses where no zone is configured. Runs a small
    Spark job, once for each session."""
    known = _jvm_zones.get(spark)
    if known is not None:
        return known
    frame = spark.range(1).select(F.expr("java_method('java.time.ZoneId', 'systemDefault')").alias("zone"))
    row = frame.first()
    assert row is not None
    return _jvm_zones.setdefault(spark, str(row["zone"]))
