"""Values of SQL expressions in Python, with their types, and as SQL literals of these types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.spark_statements import type_text
from pyhudi.sql.string_literals import string_expression

_EPOCH = dt.datetime(1970, 1, 1)
_INTERVAL = "interval "


@dataclass(frozen=True, slots=True)
class TypedValue:
    """The value of an expression.

    Attributes:
        name: The name of its column.
        data_type: Its type.
        value: The value, with the type that `with_python_types` gives it, also in arrays, maps and structs.
    """

    name: str
    data_type: DataType
    value: Any

    def literal(self) -> str:
        """Return the value as SQL.

        Raises:
            QueryError: There are no literals of its type.
        """
        return _literal(self.value, self.data_type)


def evaluate(row: DataFrame) -> list[TypedValue]:
    """Return the values of one row.

    Args:
        row: The row. Names of columns may repeat.
    """
    names = row.columns
    numbered = row.toDF(*(f"_{number}" for number in range(len(names))))
    values = cast_columns(numbered, with_python_types(numbered.schema)).first()
    assert values is not None
    return [TypedValue(*one) for one in zip(names, (f.dataType for f in numbered.schema.fields), values, strict=True)]


def with_python_types(schema: StructType) -> StructType:
    """Return columns with other types in place of those whose values Python does not hold.

    Timestamps are seconds, because Python has them in the time zone of this process, where some are ambiguous. Dates,
    timestamps without time zone and intervals are texts, because Python has years 1 to 9999 only.
    """
    return StructType([StructField(field.name, _python_type(field.dataType)) for field in schema.fields])


def _python_type(data_type: DataType) -> DataType:
    match data_type:
        case TimestampType():
            return DecimalType(20, 6)
        case DateType() | TimestampNTZType():
            return StringType()
        case ArrayType():
            return ArrayType(_python_type(data_type.elementType))
        case MapType():
            return MapType(_python_type(data_type.keyType), _python_type(data_type.valueType))
        case StructType():
            return with_python_types(data_type)
    return StringType() if _is_interval(data_type) else data_type


def _is_interval(data_type: DataType) -> bool:
    """Return True for intervals, some of which older versions of PySpark have no class for."""
    return bool(data_type.simpleString().startswith(_INTERVAL))


def cast_columns(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with other types of the columns."""
    kinds = zip(schema.fields, rows.schema.fields, strict=True)
    return rows.select(
        *(
            F.col(quoted([field.name])).cast(type_text(field.dataType)).alias(field.name)
            if field.dataType != kept.dataType
            else F.col(quoted([field.name]))
            for field, kept in kinds
        )
    )


def _literal(value: Any, data_type: DataType) -> str:
    if isinstance(data_type, NullType):
        return "NULL"
    if value is None:
        return f"CAST(NULL AS {type_text(data_type)})"
    match data_type:
        case StringType() if data_type.simpleString() == "string":
            return string_expression(value)
        case BooleanType():
            return "TRUE" if value else "FALSE"
        case IntegralType():
            suffix = {"tinyint": "Y", "smallint": "S", "bigint": "L"}.get(data_type.simpleString(), "")
            return f"{value}{suffix}"
        case DecimalType():
            text = f"{value:f}BD"
        case FractionalType():
            text = string_expression(repr(value))
        case BinaryType():
            return f"X'{bytes(value).hex()}'"
        case DateType():
            return f"DATE {string_expression(value)}"
        case TimestampType():
            return _timestamp(value)
        case TimestampNTZType():
            return f"TIMESTAMP_NTZ {string_expression(value)}"
        case ArrayType():
            text = f"array({_literals(value, [data_type.elementType] * len(value))})"
        case MapType():
            pairs = [part for pair in value.items() for part in pair]
            text = f"map({_literals(pairs, [data_type.keyType, data_type.valueType] * len(value))})"
        case StructType():
            text = f"struct({_literals(tuple(value), [field.dataType for field in data_type.fields])})"
        case _ if _is_interval(data_type):
            return str(value)  # an interval as text is a literal
        case _:
            raise QueryError(
                f"a value of the type {data_type.simpleString()} cannot be an argument: write it into the text instead"
            )
    return f"CAST({text} AS {type_text(data_type)})"


def _literals(values: Sequence[Any], kinds: Sequence[DataType]) -> str:
    return ", ".join(_literal(*one) for one in zip(values, kinds, strict=True))


def _timestamp(seconds: Decimal) -> str:
    try:
        utc = _EPOCH + dt.timedelta(microseconds=int(seconds.scaleb(6)))
    except OverflowError:  # a year beyond 9999
        return f"CAST({seconds:f}BD AS TIMESTAMP_LTZ)"
    return f"TIMESTAMP '{utc.isoformat(' ', 'microseconds')} UTC'"
