"""Rows that were read from a table with generated keys, written back to it."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError, HudiError, UnsupportedTableError
from tests.cases import seldom

NAMED = {"hoodie.table.name": "events", "hoodie.datasource.write.partitionpath.field": "city"}
COLUMNS = "id int, city string, fare bigint"
FIRST = [(1, "Oslo", 10), (2, "Oslo", 20), (3, "Bergen", 30), (1, "Oslo", 10)]
KINDS = {
    "cow": {},
    "mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "bloom": {"hoodie.index.type": "BLOOM"},
}


@pytest.fixture(autouse=True)
def activated(spark):
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


def rows(table: HudiTable) -> list[tuple]:
    found = table.scan(columns=["id", "city", "fare"]).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def keys(spark, path) -> set[str]:
    return {row[0] for row in spark.read.format("hudi").load(path).select("_hoodie_record_key").collect()}


@pytest.mark.parametrize("kind", [seldom(k) if k in ("bloom", "cow") else k for k in KINDS])
def test_upserts_and_deletes(spark, tmp_path, kind):
    path = str(tmp_path / "t")
    table = HudiTable.create(path, {**NAMED, **KINDS[kind]})
    table.bulk_insert(spark.createDataFrame(FIRST, COLUMNS))
    before = keys(spark, path)
    read = spark.read.format("hudi").load(path)
    oslo = read.where("city = 'Oslo'")
    changed = oslo.withColumn("fare", F.col("fare") + 1)
    # an upsert unless said otherwise
    changed.write.format("hudi").options(**KINDS[kind]).mode("append").save(path)
    assert rows(table) == [(1, "Oslo", 11), (1, "Oslo", 11), (2, "Oslo", 21), (3, "Bergen", 30)]
    assert keys(spark, path) == before
    assert table.history()["operation"].to_pylist()[0] == "UPSERT"
    # the frame is older than the table by now; rows without a key are new
    table.delete(read.where("id = 2").select("_hoodie_record_key", "_hoodie_partition_path"))
    assert rows(table) == [(1, "Oslo", 11), (1, "Oslo", 11), (3, "Bergen", 30)]
    added = spark.createDataFrame([(7, "Moss", 70)], COLUMNS)
    changed = read.where("id = 3").withColumn("fare", F.lit(31).cast("bigint"))
    table.upsert(changed.unionByName(added, allowMissingColumns=True))
    assert rows(table) == [(1, "Oslo", 11), (1, "Oslo", 11), (3, "Bergen", 31), (7, "Moss", 70)]
    assert len(keys(spark, path)) == 4
    table.delete(read.where("id = 3"))
    assert rows(table) == [(1, "Oslo", 11), (1, "Oslo", 11), (7, "Moss", 70)]
    assert table.validate_metadata().num_rows == 0
    _what_is_refused(spark, table, path)
    _without_a_generator(spark, table)


def _without_a_generator(spark, table):
    """A table that does not record how keys are made, as those of Apache Hudi's Java client: no write adds rows."""
    removed = ("hoodie.table.keygenerator.type", "hoodie.table.partition.fields")
    table.services.change_properties(remove=removed)
    table = HudiTable.for_path(table.path)
    merge = table.merge(
        spark.createDataFrame([(2, "Moss", 1), (7, "Moss", 71)], COLUMNS).alias("s"), "target.id = s.id"
    )
    updated = merge.when_matched_update({"fare": "s.fare"})
    assert updated.execute().rows_updated == 1
    with pytest.raises(UnsupportedTableError, match="new rows cannot be written"):
        updated.when_not_matched_insert_all().execute()
    read = spark.read.format("hudi").load(table.path).where("id = 7")
    table.upsert(read.withColumn("fare", F.col("fare") + 1))
    with pytest.raises(HudiError, match="row to be updated has no _hoodie_record_key"):
        table.upsert(read.withColumn("_hoodie_record_key", F.lit(None).cast("string")))
    assert rows(table) == [(1, "Oslo", 11), (1, "Oslo", 11), (7, "Moss", 72)]


def _what_is_refused(spark, table, path):
    read = spark.read.format("hudi").load(path)
    before = table.latest_instant
    with pytest.raises(ConfigError, match="_hoodie_record_key and _hoodie_partition_path"):
        table.upsert(read.select("id", "city", "fare"))
    with pytest.raises(ConfigError, match="_hoodie_record_key"):
        table.delete(read.drop("_hoodie_partition_path"))
    with pytest.raises(HudiError, match="was read from the partition 'Oslo'"):
        table.upsert(read.where("city = 'Oslo'").withColumn("city", F.lit("Bodø")))
    with pytest.raises(HudiError, match="has no _hoodie_record_key"):
        table.delete(read.withColumn("_hoodie_record_key", F.lit(None).cast("string")))
    assert table.latest_instant == before
