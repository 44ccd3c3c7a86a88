"""Job of :mod:`tests.spark.test_remote`: tables written and read where this process, the driver and the
executors share no memory. ``cluster``: executors in a separate JVM; ``connect``: the driver in another process, too."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.errors import RecordKeyError
from pyhudi.spark.java_runtime import ensure_java
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.session import configure_spark
from pyhudi.storage import open_storage
from tests.cases import every
from tests.connect_server import connect_session
from tests.sessions import SMALL

SETTINGS = {**SMALL, "spark.sql.shuffle.partitions": "2"}


KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
RECORDS = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
BLOOM = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"}
TABLES: dict[str, dict[str, str]] = {
    "COPY_ON_WRITE": BLOOM,
    "MERGE_ON_READ": {},
    "MERGE_ON_READ hive": HIVE | RECORDS,
    "MERGE_ON_READ buckets": BUCKETS,
}


FEW = every(2, ("MERGE_ON_READ hive", "COPY_ON_WRITE"))
"""Tables of Spark Connect, which shares all but the driver with a cluster."""


def run(spark: SparkSession, folder: Path, names: Sequence[str] = tuple(TABLES)) -> list[Any]:
    """Return the results of queries of tables of several kinds after an upsert and a delete; again after
    compaction, and through `HudiTable`."""
    pyhudi.activate(spark)
    answers = []
    for name in names:
        options = TABLES[name]
        path = str(folder / name)
        _write(spark, path, {**options, "hoodie.datasource.write.table.type": name.split()[0]})
        answers.append(_found(spark.read.format("hudi").load(path).where("p = '3' or p = '4'")))
        table = pyhudi.HudiTable.for_path(path)
        if name.startswith("MERGE_ON_READ"):
            table.services.compact(spark=spark)
        answers.append(_found(table.scan([("p", "in", ["3", "4"])]).to_spark(spark)))
    assert snapshot_ids(spark.read.format("hudi").load(path).groupBy("p").count(), open_storage(path))
    assert not snapshot_ids(spark.range(1), open_storage(path))
    return answers


def run_statements(spark: SparkSession, folder: Path) -> list[Any]:
    """Return the rows of a table that statements created and changed."""
    pyhudi.activate(spark)
    properties = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'mor')"
    spark.sql(f"CREATE TABLE t (id INT, v DOUBLE, ts BIGINT) USING hudi {properties} LOCATION '{folder}/t'")
    spark.sql("INSERT INTO t VALUES (1, 1.0, 1), (2, 2.0, 1), (3, 3.0, 1), (4, 4.0, 1)")
    spark.sql("UPDATE t SET v = v * 10, ts = 2 WHERE id = 1")
    spark.sql("DELETE FROM t WHERE id IN (SELECT max(id) FROM t)")
    changes = spark.createDataFrame([(2, 7.0, 5), (9, 9.0, 5)], "id INT, v DOUBLE, ts BIGINT")
    clauses = "WHEN MATCHED AND s.v > 4 THEN UPDATE SET v = s.v + 1, ts = s.ts WHEN NOT MATCHED THEN INSERT *"
    spark.sql(f"MERGE INTO t USING {{new}} s ON t.id = s.id {clauses}", new=changes)
    spark.range(20, 21).selectExpr("int(id) id", "0.5D v", "1L ts").write.insertInto("t")
    found = spark.sql("SELECT id, v FROM t ORDER BY id").collect()
    spark.sql("DROP TABLE t")
    keyed = "TBLPROPERTIES (primaryKey = 'id')"
    spark.sql(f"CREATE TABLE t (id INT, e VECTOR(2)) USING hudi {keyed} LOCATION '{folder}/vectors'")
    spark.sql("INSERT INTO t VALUES (20, array(0.5, 0.5)), (21, array(-1.0, 0.5)), (22, NULL)")
    found += spark.sql("SELECT id, _hudi_distance FROM hudi_vector_search('t', 'e', array(1, 1), 1, 'l2')").collect()
    found += spark.sql("SELECT id, e[0] FROM t WHERE e[0] > 0").collect()
    found += _result_of_script(spark)
    spark.sql("DROP TABLE t")
    return [list(row) for row in found]


def _result_of_script(spark: SparkSession) -> list[Any]:
    """Return the result of a script, which has a parameter and a handler."""
    if pyspark.__version__.startswith("3."):
        return [(23, 0.5)]  # it has none
    script = """BEGIN
        DECLARE total INT DEFAULT 0;
        DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO SELECT total, 0.5D;
        FOR SELECT id FROM t WHERE id > :low ORDER BY id DO
            FOR SELECT id + total AS id FROM range(1, 2) DO SET total = total + 1; END FOR;
            IF id < 22 THEN SET total = total + id; END IF;
        END FOR;
        SELECT total;
        SELECT 1 / (total - 23);
        SELECT 7;
    END"""
    return list(spark.sql(script, args={"low": 20}).collect())


def run_streams(spark: SparkSession, folder: Path) -> list[Any]:
    """Return the rows that a stream has copied from one table to another by two queries, the second of which goes on
    from the checkpoint location of the first, and the error of a query with another one."""
    pyhudi.activate(spark)
    source, target = str(folder / "source"), str(folder / "target")
    _write(spark, source, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"})

    spark.sql(f"CREATE TABLE of_stream USING hudi LOCATION '{source}'")

    def copy(rows: DataFrame, checkpoint: str, named: bool = False) -> None:
        rows = rows.where("id % 4 = 0").select("id", "p", "v")
        writer = rows.writeStream.format("hudi").options(**KEYED).option("checkpointLocation", f"{folder}/{checkpoint}")
        writer = writer.trigger(availableNow=True)
        query = writer.option("path", target).toTable("copied") if named else writer.start(target)
        query.awaitTermination()

    copy(spark.readStream.format("hudi").load(source), "first", named=True)
    added = spark.range(60, 66).selectExpr("id", "'5' as p", "id as v")
    added.write.format("hudi").options(**KEYED).mode("append").save(source)
    copy(spark.readStream.table("of_stream"), "first")
    found: list[Any] = _found(spark.table("copied"))
    batches = pyhudi.HudiTable.for_path(target).history().num_rows
    try:
        copy(spark.readStream.table("of_stream"), "second")
        refused = False
    except Exception as e:
        # Spark 3.5 writes what a function for foreachBatch raises to the log of the server only
        refused = "another streaming query" in str(e) or pyspark.__version__.startswith("3.")
    for name in ("of_stream", "copied"):
        spark.sql(f"DROP TABLE {name}")
    return [found, batches, refused]


def _found(rows: DataFrame) -> list[Any]:
    return [list(row) for row in rows.select("id", "v").orderBy("id").collect()]


def _write(spark: SparkSession, path: str, options: dict[str, str]) -> None:
    options = KEYED | options
    rows = spark.range(40).selectExpr("id", "cast(id % 5 as string) as p", "id * 2 as v")
    changed = rows.where("id % 7 = 0").withColumn("v", -rows["v"])
    for operation, batch in (("upsert", rows), ("upsert", changed), ("delete", rows.where("id = 13"))):
        batch.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", operation).mode(
            "append"
        ).save(path)


def check_key_errors(spark: SparkSession, path: str) -> None:
    """Check that what an expression of a write raises is the exception of pyhudi on each side."""
    rows = spark.sql("select cast(null as bigint) id, '1' p, 2L v")
    with pytest.raises(RecordKeyError, match="'id' is null or empty in 1 of 1 rows"):
        rows.write.format("hudi").options(**KEYED).mode("append").save(path)


@contextmanager
def cluster() -> Iterator[SparkSession]:
    """Return a session whose executor is another process."""
    builder = configure_spark(SparkSession.builder.master("local-cluster[1,2,1024]"))
    executors = {"spark.executor.extraJavaOptions": SMALL["spark.driver.extraJavaOptions"]}
    spark = _built(builder, SETTINGS | executors)
    yield spark
    spark.stop()


def _built(builder: Any, settings: dict[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


if __name__ == "__main__":
    ensure_java()
    what, argument = sys.argv[1:]
    with cluster() if what == "cluster" else connect_session(Path(argument)) as session:
        answers = run(session, Path(argument), FEW if what == "connect" else tuple(TABLES))
        check_key_errors(session, str(Path(argument) / FEW[0]))
        of_streams = run_streams(session, Path(argument)) if what == "connect" else None
        print(json.dumps([answers, run_statements(session, Path(argument)), of_streams]))
