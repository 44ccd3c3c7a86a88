"""Names of types in SQL are those of Spark, and name the same type."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyhudi.schema.converters.spark_json import to_spark_json
from pyhudi.schema.converters.sql_types import sql_type
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.schema.logical_types.blobs import BLOB
from pyhudi.schema.logical_types.variants import VARIANT
from pyhudi.schema.logical_types.vectors import vector_type

PRIMITIVE = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(38, 18),
]
HUDI = [vector_type(3, pa.float32()), vector_type(2, pa.int8()), BLOB, VARIANT]
READ_AS_OTHERS = [pa.timestamp("ms", "UTC"), pa.timestamp("ms"), pa.time32("ms"), pa.time64("us"), pa.null()]
NESTED = [
    pa.list_(pa.list_(pa.int32())),
    pa.map_(pa.string(), pa.list_(pa.decimal128(4, 2))),
    pa.struct([("Amount", pa.float64()), ("at", pa.struct([("city", pa.string()), ("_when", pa.timestamp("us"))]))]),
]


@pytest.mark.parametrize("kind", [*PRIMITIVE, *READ_AS_OTHERS, *NESTED], ids=str)
def test_names_are_those_of_spark(kind: pa.DataType) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    read = types.StructType.fromJson(json.loads(to_spark_json(pa.schema([("c", kind)]))))
    assert sql_type(kind) == read["c"].dataType.simpleString()


@pytest.mark.parametrize("kind", [*PRIMITIVE, *HUDI], ids=str)
def test_names_can_be_given_to_new_columns(kind: pa.DataType) -> None:
    assert as_table_type(sql_type(kind)) == kind
