"""Log blocks in Parquet that Spark reads itself, in one scan with the base files."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.cases import seldom
from tests.rows import assert_same_rows
from tests.spark.test_read_logs import EVENT_TIME, HIVE, MOR, SCHEMA, load, make, row, values
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable, at

from pyhudi import HudiTable
from pyhudi.timeline.instant import Action

FOLDER = "pyhudi.read.log.index.folder"


def plan_text(frame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def check(spark, table: HandMadeTable, folder, *, native: bool = True, **options: str) -> pa.Table:
    """The rows are those of the local reader, and come from one scan if ``native``."""
    frame = load(spark, table, **{FOLDER: str(folder)}, **options)
    scans = [line for line in plan_text(frame).splitlines() if "FileScan" in line]
    assert (len(scans) == 1 and "har://" in scans[0] and "Union" not in plan_text(frame)) is native
    found = to_arrow(frame)
    local = HudiTable.for_path(str(table.root)).scan(as_of=options.get("as.of.instant")).to_arrow()
    assert_same_rows(found, local)
    assert found.column_names == local.column_names
    return found


@pytest.mark.parametrize(
    ("version", "positions", "properties"),
    [
        (9, True, MOR),
        seldom((9, False, {**MOR, **HIVE})),
        (6, False, MOR),
        (8, True, EVENT_TIME),
        seldom((9, False, EVENT_TIME)),
    ],
)
def test_updates_inserts_and_deletes(spark, tmp_path, version, positions, properties):
    table = make(tmp_path, version, properties)
    prefix = "p=" if HIVE.items() <= properties.items() else ""
    f1, f2 = (f"{prefix}a", "f1"), (f"{prefix}b", "f2")
    how = {"base": 10, "positions": positions, "data_format": "parquet"}
    table.log(20, {f1: [row("k1", 11, "log"), row("k4", 12, "log")]}, deletes={f1: ["k0"]}, **how)
    new = [] if positions else [row("new", 1, "log"), row("k0", 3, "back")]
    later = [row("k1", 12, "later"), row("k4", 9, "late"), *new]
    table.log(30, {f1: later, f2: [row("m0", 10, "tie", "b")]}, deletes={f1: ["k5"]}, **how)
    found = check(spark, table, tmp_path / "index")
    assert "later" in found["w"].to_pylist()
    check(spark, table, tmp_path / "index", **{"as.of.instant": at(20)})
    frame = load(spark, table, **{FOLDER: str(tmp_path / "index")})
    assert values(frame.where("id = 'k1'"), "p", "w") == [("a", "later")]
    assert values(frame.where("p = 'b' and v >= 10"), "id") == [("m0",), ("m1",), ("m2",)]
    assert values(frame.where("id = 'n1'").where("p = 'a'"), "w") == [("base",)]
    assert frame.count() == found.num_rows
    read = plan_text(frame.where("p = 'b' and v > 10").select("id"))
    assert "PushedFilters: [IsNotNull(v), GreaterThan(v,10)]" in read
    assert "PartitionFilters: [isnotnull(p" in read


def test_tables_without_partitions_and_slices_without_base_file(spark, tmp_path):
    table = HandMadeTable(tmp_path / "t", 9, partition_fields="", schema=SCHEMA, properties=dict(MOR))
    table.write(10, {("", "f1"): [row(f"k{i}", i) for i in range(200)]}, action=Action.DELTA_COMMIT)
    table.log(20, {("", "f1"): [row(f"k{i}", i, "log") for i in range(0, 200, 3)]}, base=10, data_format="parquet")
    table.log(30, {("", "f2"): [row("only", 1, "log")]}, data_format="parquet")
    assert check(spark, table, tmp_path / "index").num_rows == 201


def test_what_spark_cannot_read_alone_takes_the_other_way(spark, tmp_path):
    """Avro blocks, blocks of partial updates, and columns of other types."""
    for name, how in {"avro": {}, "partial": {"data_format": "parquet", "columns": ["id", "w"]}}.items():
        table = make(tmp_path / name)
        table.log(20, {("a", "f1"): [row("k1", 1, "log")]}, base=10, **how)
        check(spark, table, tmp_path / "index", native=False)
