"""The type BLOB in schemas, in files and in log records."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import SchemaError, SchemaMismatchError
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.base_file import parquet
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.filtered_parquet_file import FilteredFile
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.log.decoding.data_block import decode_values
from pyhudi.merge.modes.value_equality import same_values
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.schema.converters.spark_json import from_spark_json, to_spark_json
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.schema_changes import add_column, change_type, drop_column, rename_column
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.schema.evolution.write_evolution import reconcile
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_STRUCT
from pyhudi.schema.table_types import as_nullable, to_table_types

INSIDE = pa.struct([("x", BLOB), ("n", pa.int32())])
SCHEMA = pa.schema([("id", pa.string()), ("b", BLOB), ("c", BLOB), ("s", INSIDE), ("l", pa.list_(BLOB))])
SCHEMA = SCHEMA.set(4, pa.field("l", pa.list_(pa.field("element", BLOB))))


def inline(data: bytes | None) -> dict[str, Any]:
    return {"type": "INLINE", "data": data, "reference": None}


def reference(path: str | None, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    there = {"external_path": path, "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": there}


ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "b": pa.array([inline(b"\x00\xff"), None, reference("/f", 10, 4), reference("s3://b/f")], BLOB),
        "c": pa.nulls(4, BLOB),
        "s": pa.array([{"x": inline(None), "n": 1}, None, {"x": None}, {"x": reference("f", 0, 0)}], INSIDE),
        "l": pa.array([[inline(b"x"), None], [], None, [reference("f")]], SCHEMA.field("l").type),
    },
    SCHEMA,
)


def test_avro_schema_is_that_of_apache_hudi_and_names_the_type_once() -> None:
    fields = {field["name"]: field["type"][1] for field in json.loads(to_avro(SCHEMA, "t"))["fields"]}
    assert json.dumps(fields["b"], separators=(",", ":")) == (
        '{"type":"record","name":"blob","namespace":"","fields":[{"name":"type","type":{"type":"enum","name":'
        '"blob_storage_type","symbols":["INLINE","OUT_OF_LINE"]}},{"name":"data","type":["null","bytes"],"default":null},'
        '{"name":"reference","type":["null",{"type":"record","name":"reference","fields":[{"name":"external_path","type":'
        '"string"},{"name":"offset","type":["null","long"]},{"name":"length","type":["null","long"]},{"name":"managed",'
        '"type":"boolean"}]}],"default":null}],"logicalType":"blob"}'
    )
    assert fields["c"] == "blob"
    assert fields["s"]["fields"][0]["type"] == ["null", "blob"]
    assert fields["l"]["items"] == ["null", "blob"]
    assert from_avro(to_avro(SCHEMA, "t")).equals(SCHEMA)
    assert to_avro(from_avro(to_avro(SCHEMA, "t")), "t") == to_avro(SCHEMA, "t")


def test_other_blobs_are_not_taken_for_structs() -> None:
    schema = to_avro(pa.schema([("b", BLOB)]), "t").replace('"external_path"', '"uri"')
    with pytest.raises(SchemaError, match=r"'b' has blobs with the fields struct<.*use a newer release of pyhudi"):
        from_avro(schema)


def test_spark_has_structs_with_metadata() -> None:
    field = json.loads(to_spark_json(SCHEMA))["fields"][1]
    assert field["metadata"] == {"hudi_type": "BLOB"}
    assert [(one["name"], one["nullable"]) for one in field["type"]["fields"]] == [
        ("type", True),
        ("data", True),
        ("reference", True),
    ]
    own = SCHEMA.remove(4)
    assert from_spark_json(to_spark_json(own)).equals(own)
    assert as_nullable(to_table_types(SCHEMA)).equals(SCHEMA)
    plain = as_spark_arrow(ROWS.to_batches()[0])
    assert plain.schema.field("b").type == BLOB_STRUCT
    assert conform(plain, SCHEMA).to_pylist() == ROWS.to_pylist()
    assert as_nullable(to_table_types(pa.schema([("b", BLOB_STRUCT)]))).field("b").type == BLOB_STRUCT


def test_metadata_names_a_type() -> None:
    spark = json.loads(to_spark_json(pa.schema([("b", BLOB_STRUCT)])))
    spark["fields"][0]["metadata"] = {"hudi_type": " blob "}
    assert from_spark_json(json.dumps(spark)).field("b").type == BLOB
    spark["fields"][0]["type"] = "binary"
    with pytest.raises(
        SchemaError, match=r"'b' is a BLOB, whose type is STRUCT<type: STRING.*, but it is binary; cast"
    ):
        from_spark_json(json.dumps(spark))


def test_type_stays_the_same_where_it_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(BLOB)) == BLOB
    assert as_table_type("blob") == BLOB


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "BLA"}, "the field 'type' of a value is 'BLA'; write 'INLINE' or 'OUT_OF_LINE'"),
        ({"type": "inline"}, "is 'inline'"),
        ({"type": None, "data": b"x"}, "the field 'type' of a value is null"),
        (reference(None), "the field 'reference.external_path' of a value is null"),
        (
            {"type": "OUT_OF_LINE", "reference": {"external_path": "f", "managed": None}},
            "'reference.managed' of a value is null; write true or false",
        ),
    ],
)
def test_values_that_are_no_blobs(value: dict[str, Any], message: str) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([None, inline(b""), value], BLOB_STRUCT)], names=["b"])
    with pytest.raises(SchemaMismatchError, match=f"column 'b' is a BLOB, but .*{message}"):
        conform(rows, pa.schema([("b", BLOB)]))


def test_rows_may_lack_fields() -> None:
    kind = pa.struct([("type", pa.string()), ("data", pa.binary()), ("reference", pa.null())])
    for some in (kind, pa.struct([("data", pa.binary()), ("type", pa.string())])):
        incoming = pa.schema([("b", some)])
        assert reconcile(pa.schema([("b", BLOB)]), incoming).field("b").type == BLOB
        rows = pa.RecordBatch.from_arrays([pa.array([{"type": "INLINE", "data": b"1"}, None], some)], schema=incoming)
        assert conform(rows, pa.schema([("b", BLOB)])).to_pylist() == [{"b": inline(b"1")}, {"b": None}]


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.struct([("data", pa.binary())]),
        pa.struct([("type", pa.int32()), ("data", pa.binary())]),
        pa.struct([("type", pa.string()), ("bytes", pa.binary())]),
    ],
    ids=str,
)
def test_evolution_refuses_other_types(kind: pa.DataType) -> None:
    table = pa.schema([("b", BLOB)])
    with pytest.raises(SchemaMismatchError, match=r"'b' is BLOB in the table and .*; write a STRUCT<type: STRING"):
        reconcile(table, pa.schema([("b", kind)]))
    with pytest.raises(SchemaMismatchError, match=r"'b' is .* in the table and BLOB in the incoming rows"):
        reconcile(pa.schema([("b", kind)]), table)


def test_columns_can_be_added() -> None:
    assert reconcile(SCHEMA.remove(2), SCHEMA).field("c").type == BLOB


def test_history_of_schemas() -> None:
    schema = InternalSchema.from_arrow(pa.schema([("id", pa.string()), ("b", BLOB), ("n", pa.int32())]))
    assert [field.id for field in schema.fields] == [0, 1, 2]
    assert schema.max_column_id == 2
    assert schema.paths() == {"id": 0, "b": 1, "n": 2}
    again = InternalSchema.from_json(json.loads(schema.to_json()))
    assert again == schema
    assert again.to_arrow().field("b").type == BLOB
    assert add_column(schema, "c", BLOB).to_arrow().field("c").type == BLOB
    assert rename_column(schema, "b", "c").to_arrow().field("c").type == BLOB
    for change in (
        lambda: add_column(schema, "b.x", pa.int32()),
        lambda: drop_column(schema, "b.data"),
        lambda: rename_column(schema, "b.reference.length", "size"),
        lambda: change_type(schema, "b.reference.length", pa.string()),
    ):
        with pytest.raises(SchemaMismatchError, match="is a BLOB, or inside of one, whose fields cannot be changed"):
            change()
    with pytest.raises(SchemaMismatchError, match="nested"):
        change_type(schema, "b", pa.string())


def test_log_records() -> None:
    schema = to_avro(SCHEMA, "t")
    columns = {name: ROWS[name].combine_chunks() for name in ROWS.column_names}
    values = encode_records(record_type(schema), columns, ROWS.num_rows)
    assert decode_values(values, schema).equals(ROWS)


def test_parquet_files() -> None:
    sink = pa.BufferOutputStream()
    with ParquetFileWriter(sink, BaseFileSchema(SCHEMA)) as writer:
        writer.write(ROWS)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    leaves = {file.schema.column(i).path: file.schema.column(i) for i in range(len(file.schema))}
    enums = {
        path for path, leaf in leaves.items() if leaf.converted_type == "ENUM" and leaf.logical_type.type == "ENUM"
    }
    assert enums == {"b.type", "c.type", "s.x.type", "l.list.element.type"}
    assert leaves["b.reference.external_path"].logical_type.type == "STRING"
    # required fields of optional structs
    assert [leaves[f"b.{name}"].max_definition_level for name in ("type", "data", "reference.managed")] == [1, 2, 2]
    assert pa.Table.from_batches(parquet.read_batches(file)).equals(ROWS)
    fragment = FilteredFile(pa.BufferReader(sink.getvalue()))
    assert pa.Table.from_batches(fragment.batches(["b", "id"], None, 10)).equals(ROWS.select(["b", "id"]))


def test_required_fields_below_null_structs_are_written() -> None:
    inner = pa.field("s", pa.struct([pa.field("x", pa.decimal128(5, 2), nullable=False)]), nullable=False)
    schema = pa.schema([("o", pa.struct([inner, ("n", pa.int32())]))])
    rows = pa.table({"o": pa.nulls(2, schema.field("o").type)}, schema)
    sink = pa.BufferOutputStream()
    with ParquetFileWriter(sink, BaseFileSchema(schema)) as writer:
        writer.write(rows)
    assert pq.read_table(pa.BufferReader(sink.getvalue()))["o"].to_pylist() == [None, None]
    wrong = pa.StructArray.from_arrays([pa.nulls(1, inner.type), pa.nulls(1, pa.int32())], fields=list(schema[0].type))
    with (
        pytest.raises(SchemaMismatchError, match=r"field 'o\.s' is not nullable, but a value has null"),
        ParquetFileWriter(pa.BufferOutputStream(), BaseFileSchema(schema)) as writer,
    ):
        writer.write(pa.table({"o": wrong}, schema))


def test_equality() -> None:
    other = pa.array([inline(b"\x00\xff"), None, reference("/f", 10, 5), reference("s3://b/f")], BLOB)
    assert same_values(ROWS["b"].combine_chunks(), other).tolist() == [True, True, False, True]
