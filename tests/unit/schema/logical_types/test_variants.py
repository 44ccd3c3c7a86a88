"""The type VARIANT in schemas, in files and in log records."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import SchemaError, SchemaMismatchError
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.base_file import parquet
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.log.decoding.data_block import decode_values
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.schema.converters.spark_json import from_spark_json, to_spark_json
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.schema_changes import add_column
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.schema.evolution.write_evolution import reconcile
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_IN_SPARK, VARIANT_STRUCT, is_variant
from pyhudi.schema.table_types import as_nullable, to_table_types
from pyhudi.schema.type_conversion import convert

INSIDE = pa.struct([("x", VARIANT), ("n", pa.int32())])
SCHEMA = pa.schema([("id", pa.string()), ("v", VARIANT), ("w", VARIANT), ("s", INSIDE)])
ONE = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "v": pa.array([ONE, None, ONE], VARIANT),
        "w": pa.nulls(3, VARIANT),
        "s": pa.array([{"x": ONE, "n": 1}, None, {"x": None}], INSIDE),
    },
    SCHEMA,
)


def test_avro_schema_is_that_of_apache_hudi_and_names_the_type_once() -> None:
    fields = {field["name"]: field["type"][1] for field in json.loads(to_avro(SCHEMA, "t"))["fields"]}
    assert json.dumps(fields["v"], separators=(",", ":")) == (
        '{"type":"record","name":"variant","namespace":"","fields":[{"name":"metadata","type":"bytes","doc":'
        '"Variant metadata component"},{"name":"value","type":"bytes","doc":"Variant value component"}],'
        '"logicalType":"variant"}'
    )
    assert fields["w"] == "variant"
    assert fields["s"]["fields"][0]["type"] == ["null", "variant"]
    assert from_avro(to_avro(SCHEMA, "t")).equals(SCHEMA)
    other = to_avro(SCHEMA, "t").replace('"metadata","type"', '"typed_value","type"')
    with pytest.raises(SchemaError, match=r"'v' has variants with the fields struct<.*use a newer release of pyhudi"):
        from_avro(other)


def test_spark_has_the_type_or_structs_with_metadata() -> None:
    own = json.loads(to_spark_json(SCHEMA, has_variants=True))["fields"][1]
    assert (own["type"], own["metadata"]) == ("variant", {})
    struct = json.loads(to_spark_json(SCHEMA))["fields"][1]
    assert struct["metadata"] == {"hudi_type": "VARIANT"}
    assert [(one["name"], one["type"]) for one in struct["type"]["fields"]] == [
        ("value", "binary"),
        ("metadata", "binary"),
    ]
    for has_variants in (True, False):
        assert from_spark_json(to_spark_json(SCHEMA, has_variants=has_variants)).equals(SCHEMA)
    marked = {"name": "v", "type": "binary", "nullable": True, "metadata": {"hudi_type": "variant"}}
    with pytest.raises(
        SchemaError, match=r"'v' is a VARIANT, whose type is STRUCT<value: .*, but it is binary; cast it"
    ):
        from_spark_json(json.dumps({"type": "struct", "fields": [marked]}))


def test_rows_of_spark() -> None:
    assert as_nullable(to_table_types(SCHEMA)).equals(SCHEMA)
    assert to_table_types(pa.schema([("v", VARIANT_IN_SPARK)])).field("v").type == VARIANT
    assert pickle.loads(pickle.dumps(VARIANT)) == VARIANT
    assert as_table_type("variant") == VARIANT
    batch = as_spark_arrow(ROWS.to_batches()[0])
    assert batch.schema.field("v").type.equals(VARIANT_IN_SPARK, check_metadata=True)
    assert conform(batch, SCHEMA).to_pylist() == ROWS.to_pylist()
    plain = pa.schema([("v", VARIANT_STRUCT)])
    assert as_nullable(to_table_types(plain)).equals(plain)
    assert reconcile(SCHEMA.remove(3).remove(2).remove(0), plain).field("v").type == VARIANT
    for kind in (pa.string(), pa.struct([("value", pa.binary())])):
        with pytest.raises(
            SchemaMismatchError, match=r"'v' is VARIANT in the table and .*; write a STRUCT<value: BINARY"
        ):
            reconcile(pa.schema([("v", VARIANT)]), pa.schema([("v", kind)]))


def test_shredded_values_are_refused() -> None:
    shredded = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    rows = pa.RecordBatch.from_arrays([pa.array([{"metadata": b"", "typed_value": 1}], shredded)], names=["v"])
    with pytest.raises(
        SchemaMismatchError, match=r"the variants of column 'v' are shredded.*read the table with Spark 4"
    ):
        conform(rows, pa.schema([("v", VARIANT)]))


def test_history_of_schemas() -> None:
    schema = InternalSchema.from_arrow(pa.schema([("id", pa.string()), ("v", VARIANT)]))
    assert json.loads(schema.to_json())["fields"][1]["type"] == {
        "type": "record",
        "fields": [
            {"id": -2, "name": "metadata", "optional": False, "type": "binary", "doc": "Variant metadata component"},
            {"id": -1, "name": "value", "optional": False, "type": "binary", "doc": "Variant value component"},
        ],
    }
    assert InternalSchema.from_json(json.loads(schema.to_json())).to_arrow().field("v").type == VARIANT
    with pytest.raises(SchemaMismatchError, match="is a VARIANT, or inside of one"):
        add_column(schema, "v.x", pa.int32())


def test_files_and_log_records() -> None:
    schema = to_avro(SCHEMA, "t")
    columns = {name: ROWS[name].combine_chunks() for name in ROWS.column_names}
    assert decode_values(encode_records(record_type(schema), columns, ROWS.num_rows), schema).equals(ROWS)
    sink = pa.BufferOutputStream()
    with ParquetFileWriter(sink, BaseFileSchema(SCHEMA)) as writer:
        writer.write(ROWS)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    assert [file.schema.column(i).max_definition_level for i in (1, 2, 5, 6)] == [1, 1, 2, 2]
    assert pa.Table.from_batches(parquet.read_batches(file)).equals(ROWS)


def test_files_with_the_fields_in_the_other_order() -> None:
    names = ["value", "metadata"]
    other = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in names])
    rows = pa.table({"v": pa.array([ONE, None], other)})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False)
    read = pa.Table.from_batches(parquet.read_batches(pa.BufferReader(sink.getvalue())))
    assert read.schema.field("v").type == VARIANT
    assert read["v"].to_pylist() == [ONE, None]


@pytest.mark.parametrize("names", [("metadata", "value"), ("value", "metadata")])
def test_structs_that_nothing_declares_variants_stay_structs(names):
    required = [{"name": name, "type": "binary", "nullable": False, "metadata": {}} for name in names]
    column = {"name": "s", "type": {"type": "struct", "fields": required}, "nullable": False, "metadata": {}}
    of_spark = from_spark_json(json.dumps({"type": "struct", "fields": [column]}))
    record = {"type": "record", "name": "s", "fields": [{"name": name, "type": "bytes"} for name in names]}
    schema = {"type": "record", "name": "t", "fields": [{"name": "s", "type": record}]}
    of_avro = from_avro(json.dumps(schema))
    for plain in (of_spark, of_avro):
        own = to_table_types(plain).field("s").type
        assert [field.name for field in own] == list(names)
        assert not is_variant(own)
        assert "logicalType" not in to_avro(as_nullable(to_table_types(plain)), "t")
    values = pa.array([{"metadata": b"m", "value": b"v"}], VARIANT)
    assert convert(values, of_avro.field("s").type, "s").to_pylist() == [{"metadata": b"m", "value": b"v"}]
