"""Schemas between Arrow, Avro and Spark, as Apache Hudi 1.2.0 converts them (data/schemas-1.2.0.jsonl)."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.errors import SchemaError
from pyhudi.format.avro import container as avro
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.base_file import parquet
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.converters.arrow_avro import decimal_size, default_value, from_avro, record_name, to_avro
from pyhudi.schema.converters.spark_json import from_spark_json, to_spark_json
from pyhudi.schema.evolution.write_evolution import reconcile
from pyhudi.schema.table_types import as_nullable, to_table_types
from tests.unit.format import golden

CASES = [json.loads(line) for line in (Path(__file__).parent / "data" / "schemas-1.2.0.jsonl").open(encoding="utf-8")]


def of(kind: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["kind"] == kind]


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("case", of("name"), ids=lambda case: case["table"])
def test_record_names(case: dict[str, Any]) -> None:
    assert "|".join(record_name(case["table"])) == case["result"]


@pytest.mark.parametrize("case", of("to_avro"), ids=lambda case: compact(case["spark"]["fields"])[:80])
def test_avro_of_spark_schemas(case: dict[str, Any]) -> None:
    if case["result"] == "refused":
        with pytest.raises(SchemaError):
            to_avro(from_spark_json(compact(case["spark"])), case["table"])
    else:
        assert to_avro(from_spark_json(compact(case["spark"])), case["table"]) == compact(case["result"])


@pytest.mark.parametrize("case", of("from_avro"), ids=lambda case: compact(case["avro"]["fields"])[:80])
def test_spark_schemas_of_avro(case: dict[str, Any]) -> None:
    if case["result"] == "refused":
        with pytest.raises(SchemaError):
            from_avro(compact(case["avro"]))
    else:
        assert to_spark_json(from_avro(compact(case["avro"]))) == compact(case["result"])


@pytest.mark.parametrize("table", [name for name in golden.names() if name != "v9_mor_java_client"])
def test_golden_schemas_round_trip(table: str) -> None:
    """Without a table of an Avro schema that Spark does not write: enums and names of its own."""
    texts = set()
    for name, data in golden.files(table):
        if name.endswith(("commit", ".replacecommit")) and not name.endswith(".schemacommit"):
            metadata = avro.read_container(data)[1][0] if avro.is_container(data) else json.loads(data)
            texts.add((metadata.get("extraMetadata") or {}).get("schema"))
        elif name.endswith(".parquet") and "/.hoodie/" not in name:
            texts.add(parquet.read_footer(pa.BufferReader(data)).avro_schema)
    texts -= {None, ""}
    assert texts
    for text in texts:
        assert to_avro(from_avro(text), json.loads(text)["namespace"].removeprefix("hoodie.")) == text


def test_decimal_sizes() -> None:
    assert [decimal_size(p) for p in (1, 2, 3, 4, 5, 9, 10, 12, 18, 19, 20, 38)] == [
        1,
        1,
        2,
        2,
        3,
        4,
        5,
        6,
        8,
        9,
        9,
        16,
    ]


def test_comments_and_defaults_are_kept() -> None:
    fields = [
        {"name": "a", "type": ["null", "int"], "doc": "how many", "default": None},
        {"name": "b", "type": "int", "default": 3},
    ]
    text = compact({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields})
    assert to_avro(from_avro(text), "t") == text
    spark = json.loads(to_spark_json(from_avro(text)))["fields"]
    assert spark[0]["metadata"] == {"comment": "how many"}
    assert from_spark_json(to_spark_json(from_avro(text))).field("a").metadata == {b"comment": b"how many"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ('"string"', "not an Avro record"),
        ('{"type":"record","name":"t"}', "not valid Avro"),
        ('{"type":"record","name":"t","fields":[{"name":"a","type":"nope"}]}', "unknown type 'nope' at 'a'"),
        ('{"type":"record","name":"t","fields":[{"name":"a","type":["null","t"]}]}', "refers to itself at 'a'"),
    ],
)
def test_broken_avro_is_refused(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_avro(text)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"type":"array"}', '{"type":"struct"}', '{"type":"struct","fields":[{}]}']
)
def test_broken_spark_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="not the JSON of a Spark StructType"):
        from_spark_json(text)


def test_empty_arrays_and_maps_have_items_without_a_type() -> None:
    """Spark says that they are not null, as there are none."""

    def column(kind: dict[str, object]) -> pa.Field:
        field = {"name": "c", "type": kind, "nullable": False, "metadata": {}}
        return from_spark_json(json.dumps({"type": "struct", "fields": [field]})).field(0)

    array = column({"type": "array", "elementType": "void", "containsNull": False})
    assert array.type == pa.list_(pa.field("element", pa.null()))
    values: dict[str, object] = {"type": "map", "valueType": "void", "valueContainsNull": False}
    assert column({**values, "keyType": "string"}).type == pa.map_(pa.string(), pa.null())
    with pytest.raises(SchemaError, match=r"'c' is a map whose keys have no type.*cast it"):
        column({**values, "keyType": "void"})


def test_types_without_a_place_in_tables_name_column_and_cure() -> None:
    struct = pa.struct([("x", pa.duration("us"))])
    with pytest.raises(SchemaError, match=r"'s.x' has type duration\[us\].*convert"):
        to_table_types(pa.schema([("s", struct)]))
    with pytest.raises(SchemaError, match=r"'u' has type uint64.*decimal\(20, 0\)"):
        to_table_types(pa.schema([("u", pa.uint64())]))
    with pytest.raises(SchemaError, match=r"'d' has type decimal\(40, 2\)"):
        to_table_types(pa.schema([("d", pa.decimal256(40, 2))]))
    with pytest.raises(SchemaError, match="'m' is a map with keys of type int32"):
        to_table_types(pa.schema([("m", pa.map_(pa.int32(), pa.int32()))]))
    with pytest.raises(SchemaError, match=r"column name 'a b' in 's'.*rename"):
        to_table_types(pa.schema([("s", pa.struct([("a b", pa.int32())]))]))
    with pytest.raises(SchemaError, match=r"duplicates: \['a'\]"):
        to_table_types(pa.schema([("a", pa.int32()), ("a", pa.int64())]))


def test_arrow_types_become_those_of_tables() -> None:
    given_types = {
        "i8": pa.int8(),
        "u16": pa.uint16(),
        "u32": pa.uint32(),
        "half": pa.float16(),
        "text": pa.large_string(),
        "view": pa.string_view(),
        "bytes": pa.binary(16),
        "dict": pa.dictionary(pa.int8(), pa.large_string()),
        "dec": pa.decimal256(38, 4),
        "date": pa.date64(),
        "s": pa.timestamp("s"),
        "ns": pa.timestamp("ns", "Europe/Berlin"),
        "ms": pa.timestamp("ms", "+02:00"),
        "list": pa.large_list(pa.field("item", pa.int16(), nullable=False)),
        "map": pa.map_(pa.large_string(), pa.int8()),
    }
    assert [field.type for field in to_table_types(pa.schema(given_types))] == [
        pa.int32(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.string(),
        pa.string(),
        pa.binary(),
        pa.string(),
        pa.decimal128(38, 4),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ms", "UTC"),
        pa.list_(pa.field("element", pa.int32(), nullable=False)),
        pa.map_(pa.string(), pa.int32()),
    ]


plain_types = st.sampled_from(
    [
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
        pa.timestamp("ms", "UTC"),
    ]
) | st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s)))
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)


def nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    item = st.tuples(inner, st.booleans())
    return (
        item.map(lambda i: pa.list_(pa.field("element", *i)))
        | item.map(lambda i: pa.map_(pa.string(), pa.field("value", *i)))
        | st.dictionaries(names, item, min_size=1, max_size=3).map(
            lambda d: pa.struct([pa.field(name, *i) for name, i in d.items()])
        )
    )


table_types = st.recursive(plain_types, nested, max_leaves=6)
schemas = st.dictionaries(names, st.tuples(table_types, st.booleans()), min_size=1, max_size=5).map(
    lambda d: pa.schema([pa.field(name, *i) for name, i in d.items()])
)


@given(schemas, names)
def test_avro_round_trip(schema: pa.Schema, table: str) -> None:
    text = to_avro(schema, table)
    assert from_avro(text) == schema
    avro._parsed(text)  # names do not clash: an independent parser takes it


@given(schemas)
def test_spark_round_trip(schema: pa.Schema) -> None:
    def micros(data_type: pa.DataType) -> str:
        return str(data_type).replace("timestamp[ms", "timestamp[us")

    again = from_spark_json(to_spark_json(schema))
    assert [micros(field.type) for field in again] == [micros(field.type) for field in schema]
    assert [field.nullable for field in again] == [field.nullable for field in schema]


@given(schemas)
def test_as_nullable_reaches_everything(schema: pa.Schema) -> None:
    text = json.dumps(json.loads(to_spark_json(as_nullable(schema))))
    assert "false" not in text


@pytest.mark.parametrize(
    ("avro", "default", "expected"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u0000", Decimal("0.00")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u00ff\u0001", Decimal("-2.55")),
        (
            {"type": "fixed", "name": "d", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 38},
            "\u0000" * 15 + "\u0001",
            Decimal("1e-38"),
        ),
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "fixed", "name": "f", "size": 2}, "a\u0080", b"a\x80"),
        ({"type": "int", "logicalType": "date"}, 1, dt.date(1970, 1, 2)),
        ({"type": "int", "logicalType": "time-millis"}, 1000, dt.time(0, 0, 1)),
        ({"type": "long", "logicalType": "time-micros"}, 1000, dt.time(0, 0, 0, 1000)),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1000, dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        ("int", 7, 7),
        ("float", 0, 0.0),
        ("boolean", False, False),
        ("string", "n/a", "n/a"),
        (["string", "null"], "n/a", "n/a"),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "array", "items": "int"}, [], None),
        ("int", None, None),
    ],
)
def test_defaults_are_values_of_the_column(avro: Any, default: Any, expected: Any) -> None:
    """And IGNORE_DEFAULTS tells them from other values."""
    fields = [{"name": "c", "type": avro, "default": default}]
    field = from_avro(json.dumps({"type": "record", "name": "r", "fields": fields})).field("c")
    found = default_value(field)
    assert (None if found is None else found.as_py()) == expected
    rules = MergeRules(partial=PartialUpdateMode.IGNORE_DEFAULTS)
    takes_part = rules.given(pa.array([expected, None], field.type), field)
    assert takes_part is not None
    assert takes_part.tolist() == [False, expected is not None]


def test_a_default_of_another_type_is_named() -> None:
    fields = [{"name": "c", "type": "int", "default": "seven"}]
    field = from_avro(json.dumps({"type": "record", "name": "r", "fields": fields})).field("c")
    with pytest.raises(SchemaError, match="default \"seven\" of column 'c' is not a valid int32"):
        default_value(field)


def test_numbers_in_the_long_form_are_a_union_of_numbers() -> None:
    """Schema registries write {"type": "long"} for "long"."""
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": [{"type": "long"}, "int"]}]})
    assert from_avro(text).types == [pa.int64()]
    assert record_type(text).fields[0][0] == "n"


def test_decimals_that_arrow_has_not_are_refused() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 80, "scale": 2}
    with pytest.raises(SchemaError):
        from_avro(json.dumps({"type": "record", "name": "r", "fields": [{"name": "d", "type": kind}]}))


def test_defaults_of_nullable_columns_are_kept() -> None:
    """Partial updates go by them: a commit must not change what a missing value is."""
    fields = [
        {"name": "id", "type": "string"},
        {"name": "y", "type": ["string", "null"], "default": "u"},
        {
            "name": "s",
            "type": {"type": "record", "name": "s", "fields": [{"name": "n", "type": ["int", "null"], "default": 7}]},
        },
    ]
    schema = from_avro(json.dumps({"type": "record", "name": "r", "fields": fields}))
    again = from_avro(to_avro(schema, "t"))
    assert again.equals(schema, check_metadata=True)
    assert default_value(again.field("y")).as_py() == "u"
    rules = MergeRules(partial=PartialUpdateMode.IGNORE_DEFAULTS)
    assert rules.given(pa.array(["u", "v", None]), again.field("y")).tolist() == [False, True, True]


def test_decimals_stay_bytes_where_the_schema_of_the_table_has_them() -> None:
    """In Avro, schemas with decimals as bytes and as fixed are incompatible."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    kinds = {
        "d": decimal,
        "l": {"type": "array", "items": ["null", decimal]},
        "m": {"type": "map", "values": ["null", {"type": "array", "items": decimal}]},
    }
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in kinds.items()]
    avro = {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields}
    table = from_avro(json.dumps(avro))
    plain = pa.decimal128(10, 2)
    items = pa.list_(pa.field("element", plain, nullable=False))
    incoming = pa.schema([("d", pa.decimal128(9, 2)), ("l", pa.list_(plain)), ("m", pa.map_(pa.string(), items))])
    assert json.loads(to_avro(reconcile(table, incoming), "t")) == avro
    wider = json.loads(to_avro(reconcile(table, incoming.set(0, pa.field("d", pa.decimal128(12, 2)))), "t"))
    assert wider["fields"][0]["type"][1] == {**decimal, "precision": 12}
