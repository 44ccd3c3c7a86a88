"""The verbs of ``HudiTable`` on Spark, and the same through ``format("hudi")``."""

from __future__ import annotations

import pytest

import pyhudi
from pyhudi import HudiTable

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
COLUMNS = ["id", "city", "fare"]


def frame(spark, *rows):
    return spark.createDataFrame(list(rows), "id string, city string, fare bigint")


def rows(table: HudiTable) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.scan(columns=COLUMNS).to_arrow().to_pylist())


@pytest.fixture
def table(spark, tmp_path) -> HudiTable:
    made = HudiTable.create(str(tmp_path / "rides"), OPTIONS)
    made.bulk_insert(frame(spark, ("1", "Oslo", 10), ("2", "Oslo", 20), ("3", "Bergen", 30)))
    return made


def test_every_verb(spark, table):
    assert rows(table) == [("1", "Oslo", 10), ("2", "Oslo", 20), ("3", "Bergen", 30)]
    done = table.upsert(frame(spark, ("2", "Oslo", 21), ("4", "Bergen", 40)))
    assert done.instant == table.latest_instant
    table.insert(frame(spark, ("5", "Bodø", 50)))
    table.delete(frame(spark, ("1", "Oslo", 0)))
    assert rows(table) == [("2", "Oslo", 21), ("3", "Bergen", 30), ("4", "Bergen", 40), ("5", "Bodø", 50)]
    table.insert_overwrite(frame(spark, ("6", "Bergen", 60)))
    assert rows(table) == [("2", "Oslo", 21), ("5", "Bodø", 50), ("6", "Bergen", 60)]
    table.delete_partition(["city=Bod*"])
    table.delete_partition(frame(spark, ("x", "Oslo", 0)))
    assert rows(table) == [("6", "Bergen", 60)]
    table.insert_overwrite_table(frame(spark, ("7", "Moss", 70)))
    assert rows(table) == [("7", "Moss", 70)]
    operations = table.history()["operation"].to_pylist()
    assert operations[0] == "INSERT_OVERWRITE_TABLE"
    assert operations[-1] == "BULK_INSERT"
    assert len(table.history()) == 8


def test_the_same_rows_through_the_drop_in(spark, table):
    before = table.latest_instant
    pyhudi.activate(spark)
    try:
        frame(spark, ("2", "Oslo", 22)).write.format("hudi").options(**OPTIONS).mode("append").save(table.path)
        loaded = spark.read.format("hudi").load(table.path)
        assert sorted(tuple(r) for r in loaded.select(*COLUMNS).collect()) == rows(table)
        changed = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": table.completion_of(before),
        }
        assert [r["fare"] for r in spark.read.format("hudi").options(**changed).load(table.path).collect()] == [22]
        old = spark.read.format("hudi").option("as.of.instant", before).load(table.path)
        assert old.where("id = '2'").first()["fare"] == 20
    finally:
        pyhudi.deactivate()


def test_partition_columns_given_to_the_writer(spark, tmp_path):
    pyhudi.activate(spark)
    try:
        options = {k: v for k, v in OPTIONS.items() if "partitionpath" not in k}
        writer = frame(spark, ("1", "Oslo", 10)).write.format("hudi").options(**options)
        writer.partitionBy("city").save(str(tmp_path / "t"))
    finally:
        pyhudi.deactivate()
    assert HudiTable.for_path(str(tmp_path / "t")).inspect.partitions()["partition"].to_pylist() == ["city=Oslo"]
