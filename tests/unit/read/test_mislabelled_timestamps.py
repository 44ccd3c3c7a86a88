"""Timestamps of milliseconds that older files describe as microseconds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.config import Options
from pyhudi.format.file_names import LOG
from pyhudi.merge.base_file_readers import open_base
from pyhudi.metadata.writer.file_statistics import log_bounds, read_file_bounds, rows_of_file
from pyhudi.read.execution.arrow_scan import scan_table
from pyhudi.read.query.query import Query
from pyhudi.read.scan_planner import plan_scan
from pyhudi.table.table_snapshot import TableSnapshot
from tests.tables import HandMadeTable

MOR = {"hoodie.table.type": "MERGE_ON_READ"}
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000)
WHOLE = dt.datetime(2026, 1, 2, 3, 4, 5)  # a cast of its number loses no digits


def columns(unit: str, zone: str | None) -> pa.Schema:
    time = pa.timestamp(unit, zone)
    return pa.schema(
        [
            ("id", pa.string()),
            ("p", pa.string()),
            ("t", time),
            ("s", pa.struct([("t", time), ("x", pa.int32())])),
            ("l", pa.list_(pa.field("element", time))),
            ("m", pa.map_(pa.string(), time)),
        ]
    )


def row(key: str, moment: dt.datetime, *, written: bool = False, zone: dt.tzinfo | None = None) -> dict[str, Any]:
    """A row; ``written``: as older releases wrote it, the number of milliseconds taken for microseconds."""
    moment = moment.replace(tzinfo=zone)
    time = dt.datetime(1970, 1, 1) + (moment - dt.datetime(1970, 1, 1)) / 1000 if written else moment
    return {"id": key, "p": "a", "t": time, "s": {"t": time, "x": 1}, "l": [time, None], "m": [("k", time)]}


def scan(table: HandMadeTable, filter: Any = None) -> pa.Table:
    pinned = TableSnapshot.load(table.client())
    opts = Options.parse({})
    plan = plan_scan(pinned, Query.from_options(opts, pinned.config), filter=filter, opts=opts)
    rows = scan_table(plan, pinned.storage)
    return rows.select([n for n in rows.column_names if not n.startswith("_hoodie")]).sort_by("id")


@pytest.mark.parametrize("zone", ["UTC", None], ids=["instants", "local"])
def test_base_files(tmp_path, zone) -> None:
    old, new = columns("us", zone), columns("ms", zone)
    table = HandMadeTable(tmp_path / "t", schema=new)
    table.write(10, {("a", "f1"): [row("x", MOMENT, written=True), row("y", WHOLE, written=True)]}, schema=old)
    table.write(20, {("a", "f2"): [row("z", MOMENT)]})
    expected = pa.Table.from_pylist([row("x", MOMENT), row("y", WHOLE), row("z", MOMENT)], new)
    assert scan(table).equals(expected)
    aware = MOMENT if zone is None else MOMENT.replace(tzinfo=dt.UTC)
    assert scan(table, [("t", "=", aware)]).equals(expected.take([0, 2]))


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_log_blocks(tmp_path, data_format) -> None:
    old, new = columns("us", "UTC"), columns("ms", "UTC")
    table = HandMadeTable(tmp_path / "t", schema=new, properties=MOR)
    base = [row(key, WHOLE, written=True) for key in "xyz"]
    table.write(10, {("a", "f1"): base}, schema=old, action="deltacommit")
    table.log(20, {("a", "f1"): [row("y", MOMENT, written=True)]}, base=10, schema=old, data_format=data_format)
    table.log(30, {("a", "f1"): [row("z", MOMENT)]}, base=10, data_format=data_format)
    expected = pa.Table.from_pylist([row("x", WHOLE), row("y", MOMENT), row("z", MOMENT)], new)
    assert scan(table).equals(expected)
    assert scan(table, [("id", "=", "y")]).equals(expected.slice(1, 1))


def test_microseconds_of_96_bits_and_of_orc_are_what_they_say(tmp_path) -> None:
    old, new = columns("us", "UTC"), columns("ms", "UTC")
    flat_old, flat_new = (pa.schema(list(schema)[:3]) for schema in (old, new))
    plain = {k: v for k, v in row("x", MOMENT).items() if k in flat_new.names}
    table = HandMadeTable(tmp_path / "int96", schema=flat_new, int96=True)
    table.write(10, {("a", "f1"): [plain]}, schema=flat_old)
    table.write(20, {("a", "f2"): []})
    assert scan(table).equals(pa.Table.from_pylist([plain], flat_new))
    table = HandMadeTable(tmp_path / "orc", schema=flat_new, extension="orc")
    table.write(10, {("a", "f1"): [plain]}, schema=flat_old)
    table.write(20, {("a", "f2"): []})
    assert scan(table).equals(pa.Table.from_pylist([plain], flat_new))


def test_milliseconds_in_files_are_microseconds_of_the_table(tmp_path) -> None:
    table = HandMadeTable(tmp_path / "t", schema=columns("us", "UTC"))
    table.write(10, {("a", "f1"): [row("x", MOMENT)]}, schema=columns("ms", "UTC"))
    table.write(20, {("a", "f2"): [row("y", MOMENT)]})
    assert scan(table).equals(pa.Table.from_pylist([row("x", MOMENT), row("y", MOMENT)], columns("us", "UTC")))


def test_rows_that_are_rewritten(tmp_path) -> None:
    """Merges, compactions and clusterings read base files so."""
    table = HandMadeTable(tmp_path / "t", schema=columns("us", "UTC"))
    table.write(10, {("a", "f1"): [row("x", MOMENT, written=True)]})
    assert rewritten(table, columns("ms", "UTC")) == row("x", MOMENT, zone=dt.UTC)


def test_rows_with_renamed_columns_that_are_rewritten(tmp_path) -> None:
    table = HandMadeTable(tmp_path / "t", schema=columns("us", "UTC"))
    table.write(10, {("a", "f1"): [row("x", MOMENT, written=True)]})
    time = pa.timestamp("ms", "UTC")
    wanted = pa.schema([("at", time), ("both", pa.struct([("at", time)]))])
    names = {"at": "t", "both": "s", "both.at": "t"}
    there = MOMENT.replace(tzinfo=dt.UTC)
    assert rewritten(table, wanted, names) == {"at": there, "both": {"at": there, "x": 1}}


def rewritten(table: HandMadeTable, wanted: pa.Schema, names: Any = None) -> dict[str, Any]:
    """The only row of a table's only file, read in two ways."""
    (file,) = (table.root / "a").glob("*.parquet")
    with open_base(table.storage, f"a/{file.name}", names=names) as base:
        (found,) = pa.Table.from_batches(base.batches(wanted)).select(wanted.names).to_pylist()
        (last,) = pa.Table.from_batches(base.last(wanted, 1)).select(wanted.names).to_pylist()
    assert found == last
    return found


@pytest.mark.parametrize("has_footer_bounds", [True, False], ids=["footer", "rows"])
def test_statistics(tmp_path, has_footer_bounds) -> None:
    table = HandMadeTable(tmp_path / "t", schema=columns("us", "UTC"), properties=MOR)
    written = [row("x", MOMENT, written=True), row("y", WHOLE, written=True)]
    table.write(10, {("a", "f1"): written}, action="deltacommit")
    table.log(20, {("a", "f1"): written}, base=10)
    (base,), (log,) = (tmp_path / "t" / "a").glob("*.parquet"), (tmp_path / "t" / "a").glob("*.log.*")
    if not has_footer_bounds:
        pq.write_table(pq.read_table(base), base, write_statistics=False, store_schema=False)
    time = pa.timestamp("ms", "UTC")
    wanted = pa.schema([("t", time), ("s.t", time)])
    for found in (
        read_file_bounds(table.storage, f"a/{base.name}", wanted),
        log_bounds(table.storage, f"a/{log.name}", wanted),
    ):
        for column in found.field("t"), found.field("s.t"):
            assert column[0]["min"].as_py() == WHOLE.replace(tzinfo=dt.UTC)
            assert column[0]["max"].as_py() == MOMENT.replace(tzinfo=dt.UTC)
    for kind, name in ("base", base.name), (LOG, log.name):
        (rows,) = rows_of_file(table.storage, f"a/{name}", kind, pa.schema([("t", time)]))
        assert rows["t"].to_pylist() == [MOMENT.replace(tzinfo=dt.UTC), WHOLE.replace(tzinfo=dt.UTC)]
