"""``format("hudi")`` of Spark 4 without ``activate``: the Python data source that Spark finds by itself."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.instant import Instant
from tests.cases import seldom
from tests.concurrent_archival import archive_after_first_pin
from tests.golden.expected import cases, check, unpack
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable

pytest.importorskip("pyspark.sql.datasource", reason="Spark has Python data sources from version 4 on")

PUSHED = "spark.sql.python.filterPushdown.enabled"
CASES = [case if case.values[1] == "snapshot" else seldom(case) for case in cases()]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_golden(name: str, kind: str, tables: Path, spark: SparkSession) -> None:
    golden = unpack(name, tables)
    for query in golden.queries(kind):
        reader = spark.read.format("hudi").options(**query.options)
        if "cdc" in query.options.values():
            with pytest.raises(Exception, match=r"call pyhudi\.activate"):
                reader.load(str(golden.path)).count()
        elif query.error is None:
            check(golden, query, to_arrow(reader.load(str(golden.path))))


def test_filters(tables: Path, spark: SparkSession) -> None:
    """Files are left out by what Spark tells, where it is asked to tell."""
    path = str(unpack("v9_mor_meta_all", tables).path)
    whole = HudiTable.for_path(path).scan().to_arrow()
    names = [f.name for f in whole.schema if str(f.type) in ("string", "int32", "int64", "date32[day]")]
    assert len(names) > 5
    spark.conf.set(PUSHED, "true")
    try:
        for name in names:
            value = next((v for v in whole[name].to_pylist() if v is not None), None)
            expected = sum(v == value for v in whole[name].to_pylist())
            rows = spark.read.format("hudi").option("pyhudi.read.pushed.filters", "true").load(path)
            assert rows.where(rows[f"`{name}`"] == value).count() == expected, name
            assert rows.where(rows[f"`{name}`"].isin(value, value)).count() == expected, name
    finally:
        spark.conf.unset(PUSHED)


def test_columns_of_the_dataframe(tmp_path: Path, spark: SparkSession) -> None:
    """A DataFrame keeps its columns when those of the table change, and finds them by name."""
    path = str(tmp_path / "table")
    write(spark.sql("select 1 id, 'a' one, 'b' two"), path, {**BULK, "hoodie.datasource.write.recordkey.field": "id"})
    loaded = spark.read.format("hudi").load(path).select("id", "one", "two")
    chosen = spark.read.format("hudi").schema("two string, one string").load(path)
    assert [tuple(row) for row in chosen.collect()] == [("b", "a")]
    table = HudiTable.for_path(path)
    table.alter_schema().add_column("three", "string", after="id").move_column("two", after="id").commit()
    assert [tuple(row) for row in loaded.collect()] == [(1, "a", "b")]
    assert [tuple(row) for row in chosen.collect()] == [("b", "a")]
    unread = spark.read.format("hudi").load(path)
    table.alter_schema().change_type("id", "bigint").drop_column("one").commit()
    with pytest.raises(Exception, match=r"no column 'one'; the table has"):
        unread.collect()
    with pytest.raises(Exception, match=r"id int instead of bigint; load the table again"):
        spark.read.format("hudi").schema("id int").load(path).collect()


def test_an_instant_that_is_archived_while_a_query_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process instead of Spark's Python worker."""
    from pyspark_hudi.data_source import HudiDataSource

    table, pinned = archive_after_first_pin(tmp_path, monkeypatch)
    reader = HudiDataSource({"path": str(table.root)}).reader(StructType.fromDDL("id string, v bigint"))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert sorted((row["id"], row["v"]) for row in rows) == [("x", 2), ("y", 3)]
    assert len(pinned) == 2


def test_refused(tmp_path: Path, tables: Path, spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"no Hudi table"):
        spark.read.format("hudi").load(str(tmp_path)).count()
    with pytest.raises(Exception, match="requires the path of a table"):
        spark.read.format("hudi").load()
    path = str(unpack("v9_cow_types", tables).path)
    with pytest.raises(Exception, match=r"call pyhudi\.activate"):
        spark.readStream.format("hudi").load(path).writeStream.format("noop").start().awaitTermination(60)


BULK = {"hoodie.table.name": "t", "hoodie.datasource.write.operation": "bulk_insert"}
KEYED = {**BULK, "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}
HIVE = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
LAYOUTS = {
    "one key": KEYED,
    "merge on read": {**KEYED, **HIVE, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "several keys": {
        **KEYED,
        "hoodie.datasource.write.recordkey.field": "id,amount,at",
        "hoodie.datasource.write.partitionpath.field": "p,day",
    },
    "no keys": BULK,
    "old": {**KEYED, "hoodie.write.table.version": "6"},
}
META = ("_hoodie_record_key", "_hoodie_partition_path")


def _rows(spark: SparkSession, first: int = 0) -> DataFrame:
    return spark.range(first, first + 40, numPartitions=3).selectExpr(
        "id",
        "CASE id % 4 WHEN 0 THEN 'a b' WHEN 1 THEN 'x#y%' WHEN 2 THEN null ELSE '' END AS p",
        "date_add(DATE '2024-02-27', CAST(id % 3 AS INT)) AS day",
        "CAST(id / 7 AS DECIMAL(20, 9)) AS amount",
        "timestamp_micros(id * 1234567) AS at",
        "array(id, null) AS list",
        "named_struct('x', CAST(id AS FLOAT)) AS s",
    )


def _append(rows: DataFrame, path: Path, options: dict[str, str], mode: str = "append") -> None:
    rows.write.format("hudi").options(**options).mode(mode).save(str(path))


def _instants(path: Path) -> list[Instant]:
    return list(TableMetaClient.open(str(path)).active_timeline().timeline.instants)


@pytest.mark.parametrize("name", LAYOUTS)
def test_append(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Rows, keys and partitions are those of a bulk insert with a session of pyhudi; the two go on with one another."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    options = LAYOUTS[name]
    _append(_rows(spark), ours, options)
    _append(_rows(spark, 40).repartition(1), ours, BULK)
    write(_rows(spark, 80), str(ours), BULK)
    for first in (0, 40, 80):
        write(_rows(spark, first), str(theirs), options)
    found, expected = (HudiTable.for_path(str(p)).scan().to_arrow().sort_by("id") for p in (ours, theirs))
    hidden = [n for n in found.column_names if n.startswith("_hoodie") and n not in META]
    if name == "no keys":
        assert len(set(found[META[0]].to_pylist())) == 120
        hidden.append(META[0])
    assert found.drop_columns(hidden).equals(expected.drop_columns(hidden))
    instants = _instants(ours)
    assert [i.action for i in instants].count("rollback") == 0
    assert len(instants) == 3
    assert spark.read.format("hudi").load(str(ours)).where("id >= 40").count() == 80


def test_append_that_fails(tmp_path: Path, spark: SparkSession) -> None:
    """A bad row leaves nothing visible; the next append goes on."""
    path = tmp_path / "t"
    bad = _rows(spark).selectExpr("CASE WHEN id = 33 THEN null ELSE id END AS id", "p")
    with pytest.raises(Exception, match="'id' is null or empty"):
        _append(bad, path, KEYED)
    assert not (path / ".hoodie" / "hoodie.properties").exists()
    good = _rows(spark).select("id", "p")
    _append(good, path, KEYED)
    with pytest.raises(Exception, match="'id' is null or empty"):
        _append(bad, path, KEYED)
    assert all(instant.is_completed for instant in _instants(path))
    with pytest.raises(Exception, match="is not a valid folder of the table"):
        _append(good.selectExpr("id", "'..' AS p"), path, KEYED)
    assert len(list(path.rglob("*.parquet"))) - len(list((path / ".hoodie").rglob("*.parquet"))) == len(
        set(HudiTable.for_path(str(path)).scan().to_arrow()["_hoodie_file_name"].to_pylist())
    )
    _append(good.limit(0), path, KEYED)
    _append(good.selectExpr("id + 100 AS id", "p"), path, KEYED)
    assert HudiTable.for_path(str(path)).scan().to_arrow().num_rows == 80


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"hoodie.datasource.write.operation": "upsert"}, "upsert requires jobs that read the table's records"),
        ({"hoodie.datasource.write.operation": "delete"}, "delete requires jobs that read the table's records"),
        ({"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}, "sort.mode=GLOBAL_SORT requires Spark jobs"),
        ({"hoodie.metadata.record.index.enable": "true"}, "index.enable=true requires Spark jobs"),
        ({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}, "requires heartbeats"),
        ({"hoodie.datasource.write.recordkey.field": "nope"}, r"field 'nope'.*the columns are: id, p,.* Name one"),
        ({"hoodie.datasource.write.recordkey.fild": "id"}, "did you mean"),
    ],
)
def test_append_refused(options: dict[str, str], error: str, tmp_path: Path, spark: SparkSession) -> None:
    """What is not done here is refused before anything is there, and the cure is told."""
    with pytest.raises(Exception, match=error):
        _append(_rows(spark), tmp_path / "t", {**KEYED, **options})
    assert not (tmp_path / "t").exists()


def test_append_refused_by_the_table(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "t"
    rows = _rows(spark).select("id", "p")
    with pytest.raises(Exception, match=r"upsert, the default operation of tables with record keys"):
        _append(rows, path, {k: v for k, v in KEYED.items() if not k.endswith("operation")})
    with pytest.raises(Exception, match=r"call pyhudi\.activate"):
        _append(rows, path, KEYED, "overwrite")
    assert not path.exists()
    write(rows, str(path), {**KEYED, "hoodie.metadata.record.index.enable": "true"})
    with pytest.raises(Exception, match=r"has the index 'record_index'.*call pyhudi\.activate"):
        _append(rows, path, BULK)
    assert len(_instants(path)) == 1


def test_milliseconds_and_times_of_day(tmp_path: Path, spark: SparkSession) -> None:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("p", pa.string()),
            ("at", pa.timestamp("ms", "UTC")),
            ("s", pa.struct([("local", pa.timestamp("ms")), ("t", pa.time32("ms"))])),
        ]
    )
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)
    row = {"id": "k", "p": "a", "at": at.replace(tzinfo=dt.UTC), "s": {"local": at, "t": dt.time(0, 0, 1)}}
    table = HandMadeTable(tmp_path / "t", schema=schema)
    table.write(10, {("a", "f1"): [row]})
    found = spark.read.format("hudi").load(str(table.root))
    assert [tuple(row) for row in found.selectExpr("unix_millis(at)", "s.local", "s.t").collect()] == [
        (1704164645678, at, 1000)
    ]


def test_narrower_types_have_the_keys_of_the_table(tmp_path: Path, spark: SparkSession) -> None:
    path = str(tmp_path / "table")

    def append(rows: str) -> None:
        spark.sql(f"select {rows}").write.format("hudi").options(**KEYED).mode("append").save(path)

    append("double(1) id, '2024-01-02' p")
    append("int(2) id, date('2024-01-02') p")
    found = HudiTable.for_path(path).scan().to_arrow().sort_by("id")
    assert found["_hoodie_record_key"].to_pylist() == ["1.0", "2.0"]
    assert found["_hoodie_partition_path"].to_pylist() == ["2024-01-02"] * 2
    with pytest.raises(Exception, match=r"'id' is double in the table and string .* cast it to double"):
        append("'3' id, '2024-01-02' p")
