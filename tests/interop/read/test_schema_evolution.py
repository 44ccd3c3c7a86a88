"""Tables whose columns are renamed, dropped, added and retyped (schema-on-read): each side goes on with the other's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE, PARALLELISM
from tests.spark_arrow import to_arrow
from tests.tables import HandMadeTable

SWITCH = "hoodie.schema.on.read.enable"
ON = {SWITCH: "true"}
FIRST = "id int, name string, v int, s struct<a:int,b:string>, l array<int>, p string, ts int"
VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    own = [name for name in table.column_names if not name.startswith("_hoodie_")]
    return sorted(table.select(own).to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def evolving(oracle: Oracle) -> Iterator[Oracle]:
    settings = {
        SWITCH: "true",
        # without it, 1.2.0 finds columns missing that it has itself renamed
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
        # with it, fields inside columns cannot have changed
        "spark.sql.parquet.enableVectorizedReader": "false",
        # compactions are those that the test asks for
        "hoodie.compact.inline": "false",
    }
    oracle.sql(*(f"SET {key}={value}" for key, value in settings.items()))
    yield oracle
    oracle.sql(*(f"RESET {key}" for key in settings))


@pytest.mark.parametrize(
    ("oracle", "kind"),
    [
        ("1.2.0", "MERGE_ON_READ"),
        seldom(("1.2.0", "COPY_ON_WRITE")),
        seldom(("1.1.1", "MERGE_ON_READ")),
        seldom(("1.0.2", "MERGE_ON_READ")),
        seldom(("1.0.2", "COPY_ON_WRITE")),
        seldom(("0.15.0", "MERGE_ON_READ")),
        seldom(("0.15.0", "COPY_ON_WRITE")),
    ],
    indirect=["oracle"],
)
def test_columns_changed_by_both_sides(evolving: Oracle, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    oracle, path = evolving, str(tmp_path / "t")
    options = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(VERSIONS[oracle.release]),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.compact.inline": "false",
    }

    def upsert(schema: str, *rows: tuple[Any, ...]) -> None:
        spark.createDataFrame(list(rows), schema).write.format("hudi").options(**options).mode("append").save(path)

    def check() -> list[dict[str, Any]]:
        ours = rows_of(HudiTable.for_path(path).scan().to_arrow())
        on_spark = rows_of(spark.read.format("hudi").load(path).toArrow()) if hasattr(spark, "toArrow") else ours
        assert ours == on_spark == rows_of(oracle.read(path, ON))
        return ours

    upsert(FIRST, *((i, f"n{i}", i, (i, f"s{i}"), [i], "a" if i % 2 else "b", 1) for i in range(6)))
    table = HudiTable.for_path(path)
    first = table.latest_instant
    before = check()
    with table.alter_schema() as columns:
        columns.rename_column("name", "title").add_column("extra", "bigint", after="v").change_type("v", "long")
        columns.rename_column("s.a", "aa").drop_column("l").add_column("s.c", "double")
    assert [row["title"] for row in check()] == [row["name"] for row in before]
    now = "id int, title string, v bigint, extra bigint, s struct<aa:int,b:string,c:double>, p string, ts int"
    upsert(now, (1, "T1", 2**40, 5, (100, "z", 0.5), "a", 2), (10, "T10", 7, 7, (1, "z", 1.5), "b", 2))
    assert check()[1]["v"] == 2**40
    with table.alter_schema() as columns:  # another column by the name of a dropped one, of another type
        columns.add_column("l", "string").rename_column("extra", "more").move_column("more", first=True)
    check()
    assert rows_of(HudiTable.for_path(path).scan(as_of=first).to_arrow()) == before
    name = f"evolved_{kind.lower()}_{oracle.release.replace('.', '_')}"
    oracle.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    oracle.sql(f"ALTER TABLE {name} RENAME COLUMN title TO heading")
    oracle.sql(f"ALTER TABLE {name} ADD COLUMNS (w string AFTER v)")
    check()
    oracle.sql(f"UPDATE {name} SET heading = 'theirs', w = 'w', ts = 5 WHERE id IN (2, 10)")
    assert [row["id"] for row in check() if row["heading"] == "theirs"] == [2, 10]
    newest = "more bigint, id int, heading string, v bigint, w string, s struct<aa:int,b:string,c:double>, p string, "
    upsert(newest + "ts int, l string", (9, 3, "ours", 4, "o", (5, "q", 2.5), "a", 6, "text"))
    check()
    if kind == "MERGE_ON_READ":
        assert table.services.compact().instants
        check()
    oracle.sql(f"UPDATE {name} SET l = 'last', ts = 7 WHERE id = 4")
    assert check()[4]["l"] == "last"
    oracle.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("oracle", [seldom("1.1.1")], indirect=True)
def test_filters_by_renamed_columns(evolving: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi's partition statistics of a renamed column tell of the files since then alone."""
    oracle, path = evolving, str(tmp_path / "t")
    oracle.sql(
        "CREATE TABLE renamed (id int, v string, p string) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', type = 'mor') PARTITIONED BY (p) LOCATION '{path}'",
        "INSERT INTO renamed VALUES (1, 'a', 'x'), (2, 'b', 'x')",
        "ALTER TABLE renamed RENAME COLUMN v TO w",
        "UPDATE renamed SET w = 'c' WHERE id = 1",
        "DROP TABLE renamed",
    )
    skipping = {**ON, "hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    assert oracle.read(path, skipping, where="w = 'b'").num_rows == 0
    assert oracle.read(path, ON | {"hoodie.metadata.enable": "false"}, where="w = 'b'").num_rows == 1
    scan = HudiTable.for_path(path, skipping).scan(filter="w = 'b'", columns=["id"])
    assert scan.to_arrow().to_pylist() == [{"id": 2}]
    assert [row.id for row in scan.to_spark(spark).collect()] == [2]


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("data_format", ["avro", seldom("parquet")])
def test_milliseconds_that_older_files_describe_as_microseconds(oracle: Oracle, tmp_path: Path, data_format) -> None:
    """Releases before 1.1 wrote timestamp-millis of Avro sources so."""
    moments = {key: dt.datetime(2026, 1, 2, 3, 4, 5, n * 1000, tzinfo=dt.UTC) for n, key in enumerate("wxyz")}

    def columns(unit: str) -> pa.Schema:
        time = pa.timestamp(unit, "UTC")
        return pa.schema([("id", pa.string()), ("p", pa.string()), ("t", time), ("s", pa.struct([("t", time)]))])

    def rows(keys: str, *, written: bool) -> list[dict[str, Any]]:
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        times = {key: epoch + (moments[key] - epoch) / 1000 if written else moments[key] for key in keys}
        return [{"id": key, "p": "a", "t": time, "s": {"t": time}} for key, time in times.items()]

    table = HandMadeTable(tmp_path / "t", schema=columns("ms"), properties={"hoodie.table.type": "MERGE_ON_READ"})
    base = {("a", f"{n}0000000-0000-0000-0000-000000000000-0"): rows(key, written=True) for n, key in enumerate("wx")}
    table.write(10, base, schema=columns("us"), action="deltacommit")
    logged = {file: rows("y", written=True) for file in list(base)[:1]}
    table.log(20, logged, base=10, schema=columns("us"), data_format=data_format)
    new = {("a", "20000000-0000-0000-0000-000000000000-0"): rows("z", written=False)}
    table.write(30, new, action="deltacommit")
    path = str(table.root)
    ours = rows_of(HudiTable.for_path(path).scan().to_arrow())
    assert {row["id"]: row["t"] for row in ours} == {row["id"]: row["s"]["t"] for row in ours} == moments
    assert ours == rows_of(oracle.read(path))


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.slow
def test_large_floats_that_became_text(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Older files of both sides have Java's text, which may have more digits than those of the number, and so have
    files that Apache Hudi rewrites."""
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "p",
        **NO_METADATA_TABLE,
        **PARALLELISM,
    }

    def rows(part: str, keys: str, values: list[Any], kind: pa.DataType) -> pa.Table:
        texts, count = pa.array(values, kind), len(keys)
        return pa.table({"id": list(keys), "p": [part] * count, "ts": [1] * count, "v": texts})

    def found(table: pa.Table) -> dict[str, str]:
        return {row["id"]: row["v"] for row in table.to_pylist() if row["id"] in "abc"}

    oracle.write(path, rows("x", "abc", [1897508860.0, 0.1, 1e10], pa.float32()), options)
    oracle.write(path, rows("y", "d", ["1.5"], pa.string()), options)
    theirs = found(oracle.read(path))
    assert [float(theirs[key]) for key in "bc"] == [0.1, 1e10]
    assert theirs["a"] in ("1.89750886E9", "1.8975089E9")  # Java 17, Java 19
    on_spark = spark.read.format("hudi").load(str(path)).select("id", "v")
    assert found(to_arrow(on_spark)) == theirs
    assert found(HudiTable.for_path(str(path)).scan().to_arrow()) == theirs | {"a": "1.8975089E9"}
    oracle.write(path, rows("x", "e", ["1.5"], pa.string()), options)
    assert found(oracle.read(path)) == theirs


NARROWER = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    **NO_METADATA_TABLE,
}
"""Options of the tables to which bulk inserts write narrower types."""


@pytest.mark.parametrize("oracle", ["1.2.0", seldom("0.15.0")], indirect=True)
def test_bulk_inserts_of_narrower_types(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Their files have the types of the rows, and their commits those of the table."""
    path, columns = str(tmp_path / "t"), ["id", "n", "r", "d"]
    types = [pa.string(), pa.int64(), pa.float64(), pa.decimal128(12, 2)]
    narrow = [pa.string(), pa.int32(), pa.float32(), pa.decimal128(5, 1)]
    first, then = ("a", 1, 0.5, Decimal("1.50")), ("b", 2, 0.1, Decimal("2.5"))
    for row, kinds, operation in (first, types, "upsert"), (then, narrow, "bulk_insert"):
        arrays = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
        rows = pa.Table.from_arrays(arrays, columns)
        oracle.write(path, rows, {**NARROWER, "hoodie.datasource.write.operation": operation})
    expected = [tuple(row.values()) for row in rows_of(oracle.read(path, columns=columns))]
    assert expected == [first, then]
    scan = HudiTable.for_path(path).scan()
    for found in (scan.to_arrow(), to_arrow(scan.to_spark(spark))):
        assert [tuple(row[name] for name in columns) for row in rows_of(found)] == expected
    for condition, count in ("n = 2", 1), ("r = 0.1D", 1), ("d = 2.50", 1), ("n > 0", 2):
        assert scan.to_spark(spark).where(condition).count() == count, condition


@pytest.mark.parametrize("oracle", [seldom("1.2.0"), seldom("0.15.0")], indirect=True)
def test_bulk_inserts_of_narrower_nested_types(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi writes such files, and cannot read the table then."""
    path, columns = str(tmp_path / "t"), ["id", "l", "s", "m"]

    def kinds(whole: pa.DataType, real: pa.DataType) -> list[pa.DataType]:
        struct = pa.struct([("q", whole), ("r", pa.list_(pa.struct([("x", real)])))])
        return [pa.string(), pa.list_(whole), struct, pa.map_(pa.string(), real)]

    first = ("a", [1], {"q": 1, "r": [{"x": 0.5}]}, [("k", 0.25)])
    then = ("b", [2, None], {"q": 2, "r": [{"x": 0.1}, None]}, [("k", 0.1)])
    steps = (first, kinds(pa.int64(), pa.float64()), "upsert"), (then, kinds(pa.int32(), pa.float32()), "bulk_insert")
    for row, types, operation in steps:
        arrays = [pa.array([value], kind) for value, kind in zip(row, types, strict=True)]
        rows = pa.Table.from_arrays(arrays, columns)
        oracle.write(path, rows, {**NARROWER, "hoodie.datasource.write.operation": operation})
    scan = HudiTable.for_path(path).scan()
    for found in (scan.to_arrow(), to_arrow(scan.to_spark(spark))):
        rows_found = {row["id"]: tuple(row[name] for name in columns) for row in found.to_pylist()}
        maps = {key: [*dict(row[-1]).items()] for key, row in rows_found.items()}
        assert {key: (*row[:-1], maps[key]) for key, row in rows_found.items()} == {"a": first, "b": then}
    for condition, count in ("s.q = 2", 1), ("s.q > 0", 2), ("l[0] = 2", 1), ("m['k'] = 0.1D", 1):
        assert scan.to_spark(spark).where(condition).count() == count, condition
