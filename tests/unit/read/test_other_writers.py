"""What files of other writers hold, and ours do not: required columns, 96-bit timestamps, text that is not UTF-8."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import FormatError
from pyhudi.index.sampled_keys import first_keys
from pyhudi.read.execution.arrow_scan import scan_table
from pyhudi.read.query.query import Query
from pyhudi.read.scan_planner import plan_scan
from pyhudi.schema.table_types import as_nullable
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action
from tests.tables import HandMadeTable

MOR = {"hoodie.table.type": "MERGE_ON_READ"}
INVALID = "pyhudi.read.invalid.text"


def scan(table: HandMadeTable, filter: Any = None, **options: str) -> pa.Table:
    """The rows, sorted by key, without meta columns."""
    pinned, opts = (
        TableSnapshot.load(table.client()),
        Options.parse({k.replace("__", "."): v for k, v in options.items()}),
    )
    plan = plan_scan(pinned, Query.from_options(opts, pinned.config), filter=filter, opts=opts)
    rows = scan_table(plan, pinned.storage)
    assert rows.schema == plan.output_schema
    return rows.select([n for n in rows.column_names if not n.startswith("_hoodie")]).sort_by("id")


# --- required columns ------------------------------------------------------------------------------------------------

REQUIRED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("p", pa.string(), nullable=False),
        pa.field("v", pa.int64(), nullable=False),
        pa.field(
            "s", pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())]), nullable=False
        ),
        pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field("m", pa.map_(pa.string(), pa.field("value", pa.float64(), nullable=False))),
    ]
)
FLAT = pa.schema([f for f in REQUIRED if not pa.types.is_nested(f.type)])
LOOSE = as_nullable(REQUIRED)


def whole(key: str, v: int | None) -> dict[str, Any]:
    return {"id": key, "p": "a", "v": v, "s": {"a": 1, "b": None}, "l": [1, 2], "m": [("k", 0.5)]}


@pytest.mark.parametrize("schema", [FLAT, REQUIRED], ids=["flat", "nested"])
@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_required_columns(tmp_path, schema, extension) -> None:
    table = HandMadeTable(tmp_path / "t", schema=schema, extension=extension)
    table.write(10, {("a", "f1"): [whole("x", 1)], ("a", "f2"): [whole("y", 2)]})
    expected = pa.Table.from_pylist([whole("x", 1), whole("y", 2)], as_nullable(schema))
    assert scan(table).equals(expected)
    assert scan(table, [("v", ">", 1)]).equals(expected.slice(1))


@pytest.mark.parametrize(("first", "then"), [(REQUIRED, LOOSE), (LOOSE, REQUIRED)], ids=["loosened", "tightened"])
def test_columns_that_are_required_in_one_file_and_not_in_the_next(tmp_path, first, then) -> None:
    table = HandMadeTable(tmp_path / "t", schema=first)
    table.write(10, {("a", "f1"): [whole("x", 1)]})
    nothing = {"id": "y", "p": "a"} if then is LOOSE else whole("y", 2)
    table.write(20, {("a", "f2"): [nothing]}, schema=then)
    expected = pa.Table.from_pylist([whole("x", 1), nothing], LOOSE)
    assert scan(table).equals(expected)


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
@pytest.mark.parametrize("schema", [FLAT, REQUIRED], ids=["flat", "nested"])
def test_required_columns_are_merged(tmp_path, schema, data_format) -> None:
    table = HandMadeTable(tmp_path / "t", schema=schema, properties=MOR)
    table.write(10, {("a", "f1"): [whole("x", 1), whole("y", 1), whole("z", 1)]}, action=Action.DELTA_COMMIT)
    named = [{k: v for k, v in whole(key, 2).items() if k in schema.names} for key in ("x", "n")]
    table.log(20, {("a", "f1"): named}, deletes={("a", "f1"): ["y"]}, data_format=data_format)
    table.log(30, {("a", "f1"): [{"id": "z", "v": 3}]}, columns=("id", "v"), data_format=data_format)
    rows = [whole("n", 2), whole("x", 2), whole("z", 3)]
    assert scan(table).equals(pa.Table.from_pylist(rows, as_nullable(schema)))


# --- timestamps of 96 bits -------------------------------------------------------------------------------------------

MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
OLD = dt.datetime(1, 1, 2, tzinfo=dt.UTC)
"""Nanoseconds since 1970 in 64 bits do not reach it."""


def timed(unit: str) -> pa.Schema:
    kind = pa.timestamp(unit, "UTC")
    nested = pa.struct([("n", pa.int32()), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])
    return pa.schema([("id", pa.string()), ("p", pa.string()), ("t", kind), ("s", nested)])


def moments(key: str, moment: dt.datetime) -> dict[str, Any]:
    nested = {"n": 1, "l": [moment, None], "m": [("k", moment)]}
    return {"id": key, "p": "a", "t": moment, "s": nested}


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("merged", [False, True])
def test_timestamps_of_96_bits(tmp_path, unit, merged) -> None:
    schema = timed(unit)
    moment = MOMENT if unit == "us" else MOMENT.replace(microsecond=678000)
    table = HandMadeTable(tmp_path / "t", schema=schema, properties=MOR, int96=True)
    rows = [moments("x", moment), moments("y", OLD)]
    table.write(10, {("a", "f1"): rows}, action=Action.DELTA_COMMIT)
    if merged:
        rows = [*rows, moments("z", moment)]
        table.log(20, {("a", "f1"): rows[2:]})
    expected = pa.Table.from_pylist(rows, schema)
    assert scan(table).equals(expected)
    later = [row["t"] > OLD for row in rows]
    assert scan(table, [("t", ">", OLD)]).equals(expected.filter(pa.array(later)))
    assert scan(table, [("t", "=", moment)]).equals(expected.filter(pa.array(later)))


def test_timestamps_of_96_bits_in_files_of_archived_writes(tmp_path) -> None:
    from pyhudi.read.execution.file_schemas import file_schema

    table = HandMadeTable(tmp_path / "t", schema=timed("us"), int96=True)
    table.write(10, {("a", "f1"): [moments("x", MOMENT)]})
    (path,) = (str(p.relative_to(table.root)) for p in (table.root / "a").glob("*.parquet"))
    held = file_schema(table.storage, path)
    assert [held.field(name) for name in timed("us").names] == list(timed("us"))


# --- text that is not UTF-8 ------------------------------------------------------------------------------------------


@pytest.fixture(params=["avro", "parquet"])
def latin(request, tmp_path) -> HandMadeTable:
    """Text in ISO 8859-1: of x in a base file without logs, of y in one with logs, of z in a log."""
    table = HandMadeTable(tmp_path / "t", schema=pa.schema([*FLAT, ("w", pa.string())]), properties=MOR)
    rows = {key: {**whole(key, 1), "w": "caf\udce9"} for key in "xyz"}
    table.write(10, {("a", "f1"): [rows["x"]], ("a", "f2"): [rows["y"]]}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f2"): [{k: rows["z"][k] for k in ("id", "p", "v", "w")}]}, data_format=request.param)
    return table


def test_text_that_is_not_utf8_is_refused_with_the_cure(latin) -> None:
    for key in "x", "y":
        with pytest.raises(FormatError, match=f"not UTF-8.*{INVALID}=replace"):
            scan(latin, [("id", "=", key)])


@pytest.mark.parametrize("positions", ["true", "false"])
def test_text_that_is_not_utf8_is_replaced(latin, positions) -> None:
    found = scan(latin, pyhudi__read__invalid__text="replace", hoodie__merge__use__record__positions=positions)
    assert found["w"].to_pylist() == ["caf\ufffd"] * 3
    for condition in ([("w", "=", "caf\ufffd")], pc.field("w") == "caf\ufffd"):
        assert scan(latin, condition, pyhudi__read__invalid__text="replace").equals(found)
    assert scan(latin, [("id", "=", "y")], pyhudi__read__invalid__text="replace")["w"].to_pylist() == ["caf\ufffd"]


def test_text_that_is_not_utf8_has_no_statistics(latin) -> None:
    """So no filter leaves its file out by them, and nothing fails for want of them."""
    options = {INVALID: "replace", "hoodie.metadata.index.column.stats.enable": "true"}
    table = HudiTable.for_path(str(latin.root), options)
    table.services.build_index("column_stats")
    for condition in (None, [("w", "=", "caf\ufffd")], [("w", ">", "caf\ufffc")], [("w", "<", "caf\uffff")]):
        found = table.scan(condition).to_arrow()
        assert sorted(found["id"].to_pylist()) == ["x", "y", "z"]
        assert found["w"].to_pylist() == ["caf\ufffd"] * 3


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_keys_that_are_not_utf8_are_no_samples(tmp_path, extension) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.string())])
    table = HandMadeTable(tmp_path / "t", schema=schema, extension=extension)
    table.write(10, {("a", "f1"): [{"id": key, "p": "a"} for key in ("b\udce4d", "good", "fine")]})
    table.write(20, {("a", "f2"): [{"id": "b\udce4d", "p": "a"}]})
    paths = sorted(str(path.relative_to(table.root)) for path in (table.root / "a").glob(f"f*.{extension}"))
    assert [first_keys(table.storage, path) for path in paths] == [["good", "fine"], []]
    assert first_keys(table.storage, paths[0], 1) == ["good"]
