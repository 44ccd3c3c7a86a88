"""Changes of columns, and files of every version read as those of the newest: against rows kept by column ids."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import SchemaError, SchemaMismatchError
from pyhudi.schema.evolution import schema_changes as sc
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.internal_types import Array, Map, Record, Type
from pyhudi.schema.evolution.schema_projection import conform, file_columns, file_names_of_columns, with_table_names
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.table.schema_history import SchemaHistory
from tests.properties import examples

TABLES = Path(__file__).parents[3] / "golden" / "tables"
INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
START = InternalSchema.from_arrow(
    pa.schema({"id": pa.int32(), "n": pa.string(), "s": INNER, "l": pa.list_(INNER), "m": pa.map_(pa.string(), INNER)})
)
NAMES = ["n", "s", "l", "m", "a", "b", "c", "d"]


# --- against a model -------------------------------------------------------------------------------------------------


def value(kind: Type, seed: int) -> Any:
    """A value by column ids: structs are dicts from ids."""
    if seed % 7 == 0:
        return None
    match kind:
        case Record():
            return {field.id: value(field.type, seed + field.id) for field in kind.fields}
        case Array():
            return [value(kind.element, seed + i) for i in range(seed % 3)]
        case Map():
            return [(str(i), value(kind.value, seed + i)) for i in range(seed % 3)]
        case "int" | "long":
            return seed
        case "double":
            return float(seed)
    return f"t{seed}"


def named(kind: Type, by_id: Any) -> Any:
    """A value under the names and types of a version."""
    if by_id is None:
        return None
    match kind:
        case Record():
            return {field.name: named(field.type, by_id.get(field.id)) for field in kind.fields}
        case Array():
            return [named(kind.element, one) for one in by_id]
        case Map():
            return [(key, named(kind.value, one)) for key, one in by_id]
        case "string":
            return str(by_id)
        case "double":
            return float(by_id)
    return by_id


def batch(schema: InternalSchema, rows: list[Any]) -> pa.RecordBatch:
    record = Record(schema.fields)
    return pa.RecordBatch.from_pylist([named(record, row) for row in rows], schema=schema.to_arrow())


CHANGES = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(["", "s.", "l.element.", "m.value."]), st.sampled_from(NAMES)),
    st.tuples(st.just("drop"), st.integers(0, 30), st.none()),
    st.tuples(st.just("again"), st.integers(0, 30), st.sampled_from([pa.int32(), pa.string(), INNER])),
    st.tuples(st.just("rename"), st.integers(0, 30), st.sampled_from(NAMES)),
    st.tuples(st.just("type"), st.integers(0, 30), st.sampled_from([pa.int64(), pa.float64(), pa.string()])),
    st.tuples(st.just("move"), st.integers(0, 30), st.booleans()),
    st.tuples(st.just("write"), st.integers(1, 4), st.integers(1, 1000)),
)


def changed(schema: InternalSchema, what: str, which: Any, more: Any) -> InternalSchema:
    if what == "add":
        kind = pa.struct([("x", pa.int32())]) if more == "d" else pa.int32()
        return sc.add_column(schema, f"{which}{more}", kind, position=sc.ColumnPosition(first=not which))
    paths = [path for path in schema.paths() if schema.field_at(path) is not None and path != "id"]
    if not paths:
        return schema
    path = paths[which % len(paths)]
    match what:
        case "drop":
            return sc.drop_column(schema, path)
        case "again":  # another column by the name of a dropped one
            return sc.add_column(sc.drop_column(schema, path), path, more)
        case "rename":
            return sc.rename_column(schema, path, more)
        case "type":
            return sc.change_type(schema, path, more)
    position = sc.ColumnPosition(first=True) if more or "." in path else sc.ColumnPosition(after="id")
    return sc.move_column(schema, path, position)


@settings(max_examples=examples(150))
@given(st.lists(CHANGES, min_size=1, max_size=14))
def test_files_of_every_version_are_read_as_the_newest(steps: list[tuple[str, Any, Any]]) -> None:
    schema, files = START, []
    history = SchemaHistory.from_schema(START)
    for number, (what, which, more) in enumerate(steps, 1):
        if what == "write":
            rows = [value(Record(schema.fields), more + i) or {} for i in range(which)]
            files.append((number, schema, rows))
            continue
        try:
            schema = replace(changed(schema, what, which, more), version_id=number)
        except SchemaMismatchError:
            continue  # no such change: the schema stays
        history = history.with_version(schema)
    newest = schema.to_arrow()
    assert [json.loads(version.to_json()) for version in reversed(history.versions)] == json.loads(history.text)[
        "schemas"
    ]
    for number, written, rows in files:
        names = history.names(newest, None, str(number))
        assert names == file_names_of_columns(written, schema)
        inside = file_columns(newest, names)
        stored = batch(written, rows)
        there = [name for name in stored.schema.names if name in inside]
        read = conform(with_table_names(stored.select(there), inside, names), newest)
        expected = [as_of_types(schema, written, row) for row in rows]
        assert read.to_pylist() == expected
    for name in history.unchanged() & set(newest.names):
        assert all(version.field_at(name) is None or name in version.paths() for version in history.versions)


def as_of_types(newest: InternalSchema, written: InternalSchema, row: Any) -> Any:
    """What a row that was written under one version is under another: by ids, floats as text as Java has them."""
    stored = batch(written, [row]).to_pylist()[0]
    return _moved(Record(newest.fields), Record(written.fields), stored)


def _moved(wanted: Type, written: Type, found: Any) -> Any:
    if found is None:
        return None
    match wanted, written:
        case Record(), Record():
            there = {field.id: field for field in written.fields}
            return {
                field.name: _moved(field.type, there[field.id].type, found[there[field.id].name])
                if field.id in there
                else None
                for field in wanted.fields
            }
        case Array(), Array():
            return [_moved(wanted.element, written.element, one) for one in found]
        case Map(), Map():
            return [(key, _moved(wanted.value, written.value, one)) for key, one in found]
    return named(wanted, found)


# --- what Apache Hudi has written ------------------------------------------------------------------------------------


def test_the_text_is_that_of_the_original() -> None:
    with zipfile.ZipFile(TABLES / "v8_cow_alter.zip") as file:
        (newest,) = [name for name in file.namelist() if "415687_" in name and name.endswith(".schemacommit")]
        text = file.read(newest).decode()
    versions = [InternalSchema.from_json(one) for one in json.loads(text)["schemas"]]
    history = SchemaHistory.from_schema(versions[-1])
    for version in reversed(versions[:-1]):
        history = history.with_version(version)
    assert history.text == text
    assert InternalSchema.from_arrow(versions[-1].to_arrow()) == versions[-1]
    added = sc.add_column(versions[-1], "w", pa.list_(pa.int32()))
    assert (added.fields, added.max_column_id) == (versions[-2].fields, versions[-2].max_column_id)
    assert sc.change_type(versions[-2], "x", pa.int64()).fields == versions[-3].fields
    assert sc.drop_column(versions[1], "z").fields == versions[0].fields


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: sc.drop_column(s, "gone"), "column 'gone' does not exist; the table has id, n, s, l, m"),
        (lambda s: sc.drop_column(s, "s.gone"), "column 's.gone' does not exist; s has a, b"),
        (lambda s: sc.rename_column(s, "n", "S"), "column 's' exists"),
        (lambda s: sc.rename_column(s, "n", "s.n"), "only the last part of its path"),
        (lambda s: sc.add_column(s, "N", pa.int32()), "column 'n' exists"),
        (lambda s: sc.add_column(s, "s.1", pa.int32()), "invalid column name 's.1'"),
        (lambda s: sc.rename_column(s, "n", "a-b"), "invalid column name 'a-b'"),
        (lambda s: sc.add_column(s, "n.x", pa.int32()), "'n' is not a struct"),
        (
            lambda s: sc.add_column(s, "x", pa.int32(), position=sc.ColumnPosition(after="y")),
            "the table has no such column",
        ),
        (lambda s: sc.add_column(s, "l.x", pa.int32()), "'l' is not a struct"),
        (lambda s: sc.change_type(s, "s", pa.int32()), "nested"),
        (lambda s: sc.change_type(s, "n", INNER), "only primitive types can be changed"),
        (lambda s: sc.change_type(s, "n", pa.int32()), "from string to int: values could be lost"),
        (lambda s: sc.change_type(s, "id", pa.float32()), "from int to float"),
        (lambda s: sc.change_type(s, "id", pa.decimal128(9, 0)), r"from int to decimal\(9, 0\)"),
        (lambda s: sc.change_type(s, "m.key", pa.int32()), "keys of maps cannot be changed"),
        (lambda s: sc.drop_column(sc.drop_column(s, "s.a"), "s.b"), "the last one of s"),
    ],
)
def test_refusals(change: Any, text: str) -> None:
    with pytest.raises(SchemaMismatchError, match=text):
        change(START)


def test_the_only_field_of_a_struct_is_another_one() -> None:
    before = InternalSchema.from_arrow(pa.schema([("s", pa.struct([("a", pa.int32())]))]))
    beside = sc.drop_column(sc.add_column(before, "s.b", pa.int32()), "s.a")
    after = sc.drop_column(sc.add_column(beside, "s.a", pa.string()), "s.b")
    names = file_names_of_columns(before, after)
    stored = pa.RecordBatch.from_pylist([{"s": {"a": 1}}, {"s": None}], schema=before.to_arrow())
    read = with_table_names(stored, file_columns(after.to_arrow(), names), names)
    assert conform(read, after.to_arrow()).to_pylist() == [{"s": {"a": None}}, {"s": None}]


def test_inside_lists_and_maps() -> None:
    plain = InternalSchema.from_arrow(
        pa.schema([("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.float32()))])
    )
    wider = sc.change_type(sc.change_type(plain, "l.element", pa.int64()), "m.value", pa.string())
    assert wider.to_arrow().types == [pa.list_(pa.field("element", pa.int64())), pa.map_(pa.string(), pa.string())]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("bigint", pa.int64()),
        ("Decimal(10, 2)", pa.decimal128(10, 2)),
        ("timestamp_ntz", pa.timestamp("us")),
        (pa.large_string(), pa.string()),
    ],
)
def test_types_by_name(given: object, expected: pa.DataType) -> None:
    assert as_table_type(given) == expected
    with pytest.raises(SchemaError, match="no_type"):
        as_table_type("no_type")
