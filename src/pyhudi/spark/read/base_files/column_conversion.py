"""Conversion of columns from their types and names in base files to those of the table, by Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from pyhudi.schema.evolution.internal_types import ELEMENT, VALUE
from pyhudi.schema.evolution.schema_projection import FileNames, nested_columns
from pyhudi.schema.logical_types.variants import VARIANT, is_variant
from pyhudi.schema.logical_types.vectors import is_vector
from pyhudi.schema.timestamp_units import actual_type
from pyhudi.spark.column_names import quoted_name
from pyhudi.spark.keys.value_formatter import value_text
from pyhudi.spark.read.base_files.vector_column import vector_column
from pyhudi.spark.spark_types import spark_type


def converted_column(
    field: pa.Field, stored: tuple[str, ...], file_schema: pa.Schema, names: FileNames
) -> Column | None:
    """Return the conversion of a column of the files to that of the plan; None if they are the same."""
    if not stored:
        return sf.lit(None).cast(spark_type(field.type))
    data_type = VARIANT if is_variant(field.type) else file_schema.field(field.name).type
    is_converted = data_type != field.type or field.name in nested_columns(names)
    if stored == (field.name,) and not is_converted and not is_vector(field.type):
        return None
    column = sf.col(quoted_name(stored[0]))
    if len(stored) > 1:  # No file has two of them.
        column = sf.coalesce(*(sf.col(quoted_name(name)) for name in stored))
    if is_vector(field.type):
        return vector_column(column, field)
    return _converted(column, data_type, field, field.name, names) if is_converted else column


def _converted(column: Column, stored_type: pa.DataType, field: pa.Field, path: str, names: FileNames) -> Column:
    """Convert a column, or a nested value, to the type of the table and its field names."""
    table_type = field.type
    renamed = any(other.startswith(f"{path}.") for other in names)
    if not renamed and _has_same_fields(stored_type, table_type) and not _needs_more_than_cast(stored_type, table_type):
        return column.cast(spark_type(field.type))
    if pa.types.is_struct(table_type):
        return _converted_struct(column, stored_type, table_type, path, names)
    if pa.types.is_map(table_type):
        inside = f"{path}.{VALUE}"
        return sf.transform_values(
            column, lambda _, value: _converted(value, stored_type.item_type, table_type.item_field, inside, names)
        )
    if pa.types.is_list(table_type):
        inside = f"{path}.{ELEMENT}"
        return sf.transform(
            column, lambda item: _converted(item, stored_type.value_type, table_type.value_field, inside, names)
        )
    if _counts_units(stored_type, table_type):
        return _from_units(column, stored_type, table_type)
    if pa.types.is_decimal(stored_type):
        return value_text(column, spark_type(stored_type), path, None)
    return column.cast("string").cast(spark_type(field.type))  # 0.1 remains 0.1, as in Apache Hudi.


def _counts_units(stored_type: pa.DataType, table_type: pa.DataType) -> bool:
    """Return True if the files store timestamps of the table as numbers: integers, or milliseconds that are declared as
    microseconds."""
    t = pa.types
    return bool(
        t.is_timestamp(table_type)
        and (t.is_integer(stored_type) or actual_type(stored_type, table_type) != stored_type)
    )


def _from_units(column: Column, stored_type: pa.DataType, table_type: pa.TimestampType) -> Column:
    """Convert numbers to timestamps, see `_counts_units`."""
    is_number = pa.types.is_integer(stored_type)
    if table_type.tz is not None:
        number = column if is_number else sf.unix_micros(column)
        return sf.timestamp_millis(number) if table_type.unit == "ms" else sf.timestamp_micros(number)
    epoch = sf.lit("1970-01-01").cast("timestamp_ntz")
    if not is_number:
        return epoch + (column - epoch) * 1000
    seconds = column.cast("decimal(20,0)") / (1_000 if table_type.unit == "ms" else 1_000_000)
    return epoch + sf.make_dt_interval(secs=seconds.cast("decimal(18,6)"))


def _converted_struct(
    column: Column, stored_type: pa.DataType, table_type: pa.DataType, path: str, names: FileNames
) -> Column:
    kinds = {stored_type.field(i).name: stored_type.field(i).type for i in range(stored_type.num_fields)}
    members = []
    for i in range(table_type.num_fields):
        field = table_type.field(i)
        inside = f"{path}.{field.name}"
        name = names.get(inside, field.name)
        if name in kinds:
            member = _converted(column.getField(name), kinds[name], field, inside, names)
        else:
            member = sf.lit(None).cast(spark_type(field.type))
        members.append(member.alias(field.name))
    return sf.when(column.isNotNull(), sf.struct(*members))


def _has_same_fields(stored_type: pa.DataType, table_type: pa.DataType) -> bool:
    """Return True if a cast is possible, which matches fields by position: they have the same names."""
    if stored_type.num_fields != table_type.num_fields:
        return False
    pairs = [(stored_type.field(i), table_type.field(i)) for i in range(stored_type.num_fields)]
    named = not pa.types.is_struct(table_type) or all(stored_field.name == field.name for stored_field, field in pairs)
    return named and all(_has_same_fields(stored_field.type, field.type) for stored_field, field in pairs)


def _needs_more_than_cast(stored_type: pa.DataType, table_type: pa.DataType) -> bool:
    """Return True if a cast changes values or nested values: floats that become doubles, numbers that are timestamps,
    and decimals that become text, which has exponents without ANSI mode only."""
    t = pa.types
    if (t.is_float32(stored_type) and t.is_float64(table_type)) or _counts_units(stored_type, table_type):
        return True
    if t.is_decimal(stored_type) and t.is_string(table_type):
        return True
    if not t.is_nested(stored_type) or stored_type.num_fields != table_type.num_fields:
        return False
    return any(
        _needs_more_than_cast(stored_type.field(i).type, table_type.field(i).type)
        for i in range(stored_type.num_fields)
    )
