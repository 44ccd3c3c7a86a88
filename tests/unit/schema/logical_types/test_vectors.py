"""The type VECTOR in schemas, in files and in log records."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import FormatError, SchemaError, SchemaMismatchError
from pyhudi.format.avro.columnar_decoder import decode_steps
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.base_file import parquet
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.filtered_parquet_file import FilteredFile
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.log.decoding.data_block import decode_values
from pyhudi.merge.modes.value_equality import same_values
from pyhudi.read.cdc.json_text import json_texts
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.schema.converters.spark_json import from_spark_json, to_spark_json
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.schema_changes import change_type
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.schema.evolution.write_evolution import reconcile
from pyhudi.schema.logical_types.vectors import (
    as_lists,
    as_vectors,
    parse_vector,
    parse_vector_columns,
    vector_bytes,
    vector_text,
    vector_type,
    vectors_of_bytes,
)
from pyhudi.schema.table_types import as_nullable, to_table_types

FLOATS, DOUBLES, BYTES = (
    vector_type(size, kind) for size, kind in ((3, pa.float32()), (2, pa.float64()), (4, pa.int8()))
)
SCHEMA = pa.schema([("id", pa.string()), ("v", FLOATS), ("d", DOUBLES), ("b", BYTES), ("w", FLOATS)])
ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "v": pa.array([[1, 2, 3], None, [0.5, -1.5, float("inf")]], FLOATS),
        "d": pa.array([[1.5, 2], [3, 4], None], DOUBLES),
        "b": pa.array([None, [1, 2, 3, -4], [127, -128, 0, 1]], BYTES),
        "w": pa.array([[7, 8, 9], [1, 1, 1], [2, 2, 2]], FLOATS),
    },
    SCHEMA,
)


def test_avro_schema_is_that_of_apache_hudi_and_names_a_type_once() -> None:
    fields = {field["name"]: field["type"][1] for field in json.loads(to_avro(SCHEMA, "t"))["fields"]}
    assert fields["v"] == {
        "type": "fixed",
        "name": "vector_float_3",
        "namespace": "",
        "size": 12,
        "logicalType": "vector",
        "dimension": 3,
        "elementType": "FLOAT",
        "storageBacking": "FIXED_BYTES",
    }
    assert (fields["d"]["name"], fields["d"]["size"]) == ("vector_double_2", 16)
    assert (fields["b"]["name"], fields["b"]["elementType"]) == ("vector_int8_4", "INT8")
    assert fields["w"] == "vector_float_3"
    assert from_avro(to_avro(SCHEMA, "t")).equals(SCHEMA)


def test_spark_has_arrays_with_metadata() -> None:
    field = json.loads(to_spark_json(SCHEMA))["fields"][2]
    array = {"type": "array", "elementType": "double", "containsNull": False}
    assert field == {"name": "d", "type": array, "nullable": True, "metadata": {"hudi_type": "VECTOR(2, DOUBLE)"}}
    assert from_spark_json(to_spark_json(SCHEMA)).equals(SCHEMA)
    assert as_nullable(SCHEMA).equals(SCHEMA)
    plain = as_spark_arrow(ROWS.to_batches()[0])
    assert plain.schema.field("v").type == pa.list_(pa.field("element", pa.float32(), nullable=False))
    assert conform(plain, SCHEMA).equals(ROWS.to_batches()[0])


@pytest.mark.parametrize("kind", [FLOATS, DOUBLES, BYTES], ids=vector_text)
def test_types_stay_the_same_where_they_are_pickled(kind: pa.DataType) -> None:
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert to_table_types(pa.schema([("v", pa.list_(pa.field("x", kind.value_type, False), 3))])).field("v").type == (
        vector_type(3, kind.value_type)
    )


def marked(kind: object, mark: str) -> str:
    array = kind if isinstance(kind, str) else {"type": "array", "elementType": "float", "containsNull": True}
    field = {"name": "v", "type": array, "nullable": True, "metadata": {"hudi_type": mark}}
    return json.dumps({"type": "struct", "fields": [field]})


def test_metadata_names_a_type() -> None:
    assert from_spark_json(marked([], " vector( 3 , float ) ")).field("v").type == FLOATS
    for kind, mark, message in (
        ([], "VECTOR(3, DOUBLE)", "is a VECTOR\\(3, DOUBLE\\), whose type is array<double>"),
        ("string", "VECTOR(3)", "whose type is array<float>"),
        ([], "VECTOR", "not a valid type"),
        ([], "VECTOR(0)", "must be at least 1"),
        ([], "VECTOR(3, INT)", "FLOAT, DOUBLE or INT8"),
        ([], "MATRIX", "a type that pyhudi does not write"),
    ):
        with pytest.raises(SchemaError, match=message):
            from_spark_json(marked(kind, mark))
    inside = json.loads(marked([], "VECTOR(3)"))
    outer = {"name": "s", "type": inside, "nullable": True, "metadata": {}}
    with pytest.raises(SchemaError, match=r"'s\.v' is a VECTOR\(3\) inside of another column"):
        from_spark_json(json.dumps({"type": "struct", "fields": [outer]}))


@pytest.mark.parametrize("text", ["VECTOR(3)", "VECTOR(2, DOUBLE)", "VECTOR(4, INT8)"])
def test_texts(text: str) -> None:
    kind = parse_vector(text)
    assert kind is not None
    assert vector_text(kind) == text
    assert parse_vector("ARRAY<FLOAT>") is None
    assert parse_vector("VECTOR(4, BYTE)") == BYTES
    assert as_table_type(text) == kind


def test_footer_entry() -> None:
    text = "v:VECTOR(3),d:VECTOR(2, DOUBLE),b:VECTOR(4, INT8)"
    assert parse_vector_columns(text) == {"v": FLOATS, "d": DOUBLES, "b": BYTES}
    with pytest.raises(FormatError, match="VECTOR\\(3, INT\\)"):
        parse_vector_columns("v:VECTOR(3, INT)")


@pytest.mark.parametrize("kind", [FLOATS, DOUBLES, BYTES], ids=vector_text)
def test_bytes_are_little_endian_elements(kind: pa.DataType) -> None:
    size = kind.list_size
    values = pa.array([[9] * size, list(range(size)), None, [-4] * size], kind)
    for some in (values, values[1:], values[2:3], values[3:], values[:0], pa.nulls(2, kind), values.take([3, 2, 0])):
        stored = vector_bytes(some)
        stored.validate(full=True)
        element = np.dtype(kind.value_type.to_pandas_dtype()).newbyteorder("<")
        assert stored.to_pylist() == [None if v is None else np.array(v, element).tobytes() for v in some.to_pylist()]
        for form in (stored, stored.cast(pa.binary())):
            found = vectors_of_bytes(form, kind)
            found.validate(full=True)
            assert found.equals(some)
        assert as_vectors(as_lists(some), kind).equals(some)


def test_values_that_are_no_vectors() -> None:
    for values, kind, message in (
        ([[1.0, 2.0]], pa.list_(pa.float32()), "'v' is a VECTOR\\(3\\), but a value has 2 elements; write 3"),
        ([[1.0, None, 2.0]], pa.list_(pa.float32()), "an element of a value is null"),
        ([b"1234"], pa.binary(), "not a VECTOR\\(3\\)"),
        ([1.5], pa.float32(), "cannot convert column 'v'"),
    ):
        rows = pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["v"])
        with pytest.raises(SchemaMismatchError, match=message):
            conform(rows, pa.schema([("v", FLOATS)]))
    wide = pa.RecordBatch.from_arrays([pa.array([[1, 2, 3, 400]])], names=["b"])
    with pytest.raises(SchemaMismatchError, match="does not fit into a VECTOR\\(4, INT8\\)"):
        conform(wide, pa.schema([("b", BYTES)]))


def test_evolution_keeps_vectors() -> None:
    lists = pa.schema([f if f.name == "id" else f.with_type(pa.list_(f.type.value_type)) for f in SCHEMA])
    assert reconcile(SCHEMA, lists).equals(SCHEMA)
    added = reconcile(SCHEMA.remove(4), SCHEMA)
    assert added.equals(SCHEMA)
    for kind, message in (
        (vector_type(4, pa.float32()), r"'v' is VECTOR\(3\) in the table and VECTOR\(4\) in the incoming rows"),
        (pa.list_(pa.float64()), r"'v' is VECTOR\(3\) in the table and list<.*double.*; cast its elements to float"),
        (pa.binary(), r"'v' is VECTOR\(3\) in the table and binary"),
    ):
        with pytest.raises(SchemaMismatchError, match=message):
            reconcile(SCHEMA, SCHEMA.set(1, pa.field("v", kind)))
    with pytest.raises(SchemaMismatchError, match=r"'v' is list<.* in the table and VECTOR\(3\)"):
        reconcile(lists, SCHEMA)


def test_history_of_schemas() -> None:
    schema = InternalSchema.from_arrow(SCHEMA)
    assert [field.type for field in schema.fields[1:4]] == [
        "vector[3, FLOAT, FIXED_BYTES]",
        "vector[2, DOUBLE, FIXED_BYTES]",
        "vector[4, INT8, FIXED_BYTES]",
    ]
    again = InternalSchema.from_json(json.loads(schema.to_json()))
    assert again == schema
    assert again.to_arrow().equals(SCHEMA)
    for kind in (pa.string(), pa.float64(), vector_type(4, pa.float32())):
        with pytest.raises(SchemaMismatchError):
            change_type(schema, "v", kind)


def test_log_records() -> None:
    schema = to_avro(SCHEMA, "t")
    columns = {name: ROWS[name].combine_chunks() for name in ROWS.column_names}
    values = encode_records(record_type(schema), columns, ROWS.num_rows)
    assert decode_values(values, schema).equals(ROWS)
    assert decode_steps(values, record_type(schema)).equals(ROWS)


def test_parquet_files() -> None:
    sink = pa.BufferOutputStream()
    with ParquetFileWriter(sink, BaseFileSchema(SCHEMA)) as writer:
        writer.write(ROWS)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    assert [file.schema.column(i).physical_type for i in range(1, 5)] == ["FIXED_LEN_BYTE_ARRAY"] * 4
    text = b"v:VECTOR(3),d:VECTOR(2, DOUBLE),b:VECTOR(4, INT8),w:VECTOR(3)"
    assert file.metadata.metadata[b"hoodie.vector.columns"] == text
    assert pa.Table.from_batches(parquet.read_batches(file)).equals(ROWS)
    fragment = FilteredFile(pa.BufferReader(sink.getvalue()))
    assert fragment.comparable == {"id"}
    assert pa.Table.from_batches(fragment.batches(["v", "id"], None, 10)).equals(ROWS.select(["v", "id"]))


def test_equality_and_json() -> None:
    other = pa.array([[1, 2, 3], None, [0.5, -1.5, 2]], FLOATS)
    assert same_values(ROWS["v"].combine_chunks(), other).tolist() == [True, True, False]
    assert json_texts(other).to_pylist() == ["[1.0,2.0,3.0]", None, "[0.5,-1.5,2.0]"]
