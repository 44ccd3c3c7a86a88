"""CALL partition_bucket_index_manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import ConfigError, ConflictError, InstantNotFoundError, QueryError, UnsupportedTableError
from pyhudi.index.bucket_counts import counted_instants
from pyhudi.spark.write import write_execution
from pyhudi.storage import open_storage
from tests.bucket_tables import meanwhile

pytest.importorskip("sqlglot")
BUCKETS = "`hoodie.index.type` = 'BUCKET', `hoodie.bucket.index.num.buckets` = '2'"


@pytest.fixture
def bucketed(spark, tmp_path):
    path = str(tmp_path / "bucketed")
    spark.sql(
        "CREATE TABLE bucketed (id INT, name STRING, ts BIGINT, city STRING) USING hudi TBLPROPERTIES "
        f"(primaryKey = 'id', preCombineField = 'ts', type = 'mor', {BUCKETS}) PARTITIONED BY (city) LOCATION '{path}'"
    )
    spark.sql("INSERT INTO bucketed SELECT id, 'a', 0, if(id % 2 = 0, 'oslo', 'moss') FROM range(40)")
    yield path
    spark.sql("DROP TABLE bucketed")


def _call(spark, **arguments):
    named = ", ".join(
        f"{name} => {value!r}" if isinstance(value, str) else f"{name} => {str(value).lower()}"
        for name, value in arguments.items()
    )
    (row,) = spark.sql(f"CALL partition_bucket_index_manager(table => 'bucketed', {named})").collect()
    return tuple(row)


def _buckets(path, city):
    names = {file.name.lstrip(".")[:8] for file in Path(path, f"city={city}").glob("*.parquet")}
    return len(names)


def _rows(spark):
    return sorted(tuple(row) for row in spark.sql("SELECT id, name, city FROM bucketed").collect())


def test_partitions_are_rewritten_with_other_numbers(spark, bucketed):
    before = _rows(spark)
    dry = _call(spark, overwrite="oslo,7", bucket_number=2)
    assert dry == ("SUCCESS", "DRY_RUN_OVERWRITE", "city=oslo => 7")
    assert counted_instants(open_storage(bucketed)) == []
    (first,) = {row[0] for row in spark.sql("SELECT _hoodie_commit_time FROM bucketed").collect()}
    result, operation, _ = _call(spark, overwrite="oslo,7", bucket_number=2, dry_run=False)
    assert (result, operation) == ("SUCCESS", "OVERWRITE")
    assert _rows(spark) == before
    assert _buckets(bucketed, "moss") == 2
    (instant,) = counted_instants(open_storage(bucketed))
    # writes go on, with the stored numbers
    spark.sql(
        "MERGE INTO bucketed USING (SELECT id AS k FROM range(60)) ON id = k WHEN MATCHED THEN UPDATE SET name = "
        "'b', ts = 1 WHEN NOT MATCHED THEN INSERT (id, name, ts, city) VALUES (k, 'c', 1, 'oslo')"
    )
    after = _rows(spark)
    assert [row[:2] for row in after] == [(k, "b" if k < 40 else "c") for k in range(60)]
    assert spark.sql("SELECT name FROM bucketed WHERE id = 4 AND city = 'oslo'").collect() == [("b",)]
    assert counted_instants(open_storage(bucketed)) == [instant]
    # time travel to before the change finds keys in the buckets of then
    before_change = f"SELECT name FROM bucketed TIMESTAMP AS OF '{first}' WHERE city = 'oslo' AND id = "
    assert [spark.sql(f"{before_change}{key}").collect() for key in range(0, 12, 2)] == [[("a",)]] * 6
    spark.sql("SET hoodie.clustering.inline = true")  # of other tables: no clustering follows this call
    try:
        added = _call(spark, add="moss,3", dry_run=False)
    finally:
        spark.sql("RESET hoodie.clustering.inline")
    assert added[:2] == ("SUCCESS", "OVERWRITE")
    assert _rows(spark) == after
    assert _call(spark, show_config=True)[2].count('"defaultBucketNumber": 2') == 2
    # and back again
    *_, last = counted_instants(open_storage(bucketed))
    with pytest.raises(InstantNotFoundError, match="instants that did"):
        _call(spark, rollback="20200101000000000")
    assert _call(spark, rollback=last) == ("SUCCESS", "ROLLBACK", f"rolled back {last}")
    assert counted_instants(open_storage(bucketed)) == [instant]
    spark.sql("UPDATE bucketed SET name = 'd', ts = 2")
    assert {row[1] for row in _rows(spark)} == {"d"}
    assert len(_rows(spark)) == 60


@pytest.mark.usefixtures("bucketed")
def test_rules_for_partitions_to_come(spark):
    assert _call(spark, overwrite="bergen,5", bucket_number=2) == ("SUCCESS", "DRY_RUN_OVERWRITE", "")
    before = _rows(spark)
    _call(spark, overwrite="bergen,5", bucket_number=2, dry_run=False)
    assert _rows(spark) == before
    spark.sql("INSERT INTO bucketed SELECT id, 'a', 0, 'bergen' FROM range(100, 160)")
    assert len(_rows(spark)) == 100
    spark.sql("UPDATE bucketed SET name = 'z', ts = 3 WHERE city = 'bergen'")
    assert len(_rows(spark)) == 100


def test_refused(spark, bucketed, tmp_path):
    with pytest.raises(QueryError, match="needs one of show_config, rollback, overwrite, add"):
        _call(spark, dry_run=True)
    with pytest.raises(ConfigError, match="set bucket_number to the number with which it was created"):
        _call(spark, overwrite="oslo,7")
    with pytest.raises(ConfigError, match="set overwrite instead"):
        _call(spark, add="oslo,7")
    with pytest.raises(ConfigError, match="pairs of a regular expression"):
        _call(spark, overwrite="oslo", bucket_number=2)
    with pytest.raises(ConfigError, match="with which the table was created"):
        _call(spark, overwrite="oslo,7", bucket_number=16, dry_run=False)
    assert counted_instants(open_storage(bucketed)) == []
    other = str(tmp_path / "plain")
    spark.range(3).write.format("hudi").options(
        **{"hoodie.table.name": "plain", "hoodie.datasource.write.recordkey.field": "id"}
    ).save(other)
    with pytest.raises(UnsupportedTableError, match="does not have the simple bucket index"):
        spark.sql(f"CALL partition_bucket_index_manager(table => '{other}', overwrite => 'a,2', bucket_number => 2)")
    with pytest.raises(ConfigError, match="rewrites what is stored"):
        spark.range(3).write.format("hudi").option("hoodie.datasource.write.operation", "bucket_rescale").mode(
            "append"
        ).save(other)


@pytest.mark.usefixtures("bucketed")
def test_numbers_that_change_again_before_a_write_begins(spark, monkeypatch):
    """The write has no numbers among its options that could contradict the new ones."""
    _call(spark, overwrite="bergen,5", bucket_number=2, dry_run=False)
    begin = write_execution.begin_write

    def begin_after_another(job):
        monkeypatch.setattr(write_execution, "begin_write", begin)
        _call(spark, overwrite="bergen,7", bucket_number=2, dry_run=False)
        return begin(job)

    monkeypatch.setattr(write_execution, "begin_write", begin_after_another)
    spark.sql("SET hoodie.write.concurrency.mode = OPTIMISTIC_CONCURRENCY_CONTROL")
    try:
        spark.sql("INSERT INTO bucketed SELECT id, 'a', 0, 'bergen' FROM range(100, 160)")
    finally:
        spark.sql("RESET hoodie.write.concurrency.mode")
    spark.sql("UPDATE bucketed SET name = 'z', ts = 3 WHERE city = 'bergen'")
    assert len(_rows(spark)) == 100


@pytest.mark.usefixtures("bucketed")
def test_a_write_with_the_old_numbers_conflicts(spark, monkeypatch):
    """Also in a partition that the change did not know."""
    spark.sql("SET hoodie.write.concurrency.mode = OPTIMISTIC_CONCURRENCY_CONTROL")
    try:
        meanwhile(monkeypatch, lambda: _call(spark, overwrite="bergen,5", bucket_number=2, dry_run=False))
        with pytest.raises(ConflictError):
            spark.sql("INSERT INTO bucketed VALUES (500, 'a', 0, 'bergen')")
    finally:
        spark.sql("RESET hoodie.write.concurrency.mode")
    spark.sql("INSERT INTO bucketed VALUES (500, 'a', 0, 'bergen')")
    spark.sql("UPDATE bucketed SET name = 'b', ts = 1 WHERE id = 500")
    assert [row for row in _rows(spark) if row[0] == 500] == [(500, "b", "bergen")]
