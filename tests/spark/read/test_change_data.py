"""Change data of a table that SQL has made, by every way to ask for it, until the cleaner takes it away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError
from pyhudi.spark.read import cdc_frame
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.spark.model import batch, frame, options

INCREMENTAL = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "earliest",
}


def _images(rows: list[tuple[str, str, str | None, str | None]]) -> list[tuple[str, object, object]]:
    told = [
        (op, *(None if image is None else json.loads(image)["fare"] for image in images)) for op, _, *images in rows
    ]
    return sorted(told, key=repr)


def _collected(frame: DataFrame) -> list[tuple[str, object, object]]:
    assert frame.columns == ["op", "ts_ms", "before", "after"]
    return _images([tuple(row) for row in frame.collect()])


def test_ways_to_ask(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t")
    pyhudi.activate(spark)
    spark.sql(
        "CREATE TABLE cdc_rides (id int, fare double, ts long, city string) USING hudi PARTITIONED BY (city) "
        f"LOCATION '{path}' "
        "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.table.cdc.enabled' = 'true')"
    )
    try:
        spark.sql("INSERT INTO cdc_rides VALUES (1, 10.0, 1, 'Oslo'), (2, 20.0, 1, 'Moss')")
        spark.sql("UPDATE cdc_rides SET fare = 11.0, ts = 2 WHERE id = 1")
        spark.sql("DELETE FROM cdc_rides WHERE id = 2")
        expected = sorted([("i", None, 10.0), ("i", None, 20.0), ("u", 10.0, 11.0), ("d", 20.0, None)], key=repr)
        asked = "SELECT * FROM hudi_table_changes('cdc_rides', 'cdc', 'earliest')"
        assert _collected(spark.sql(asked)) == expected
        assert _collected(spark.read.format("hudi").options(**INCREMENTAL).load(path)) == expected
        found = HudiTable.for_path(path).changes("earliest").to_arrow()
        assert _images([tuple(row.values()) for row in found.to_pylist()]) == expected
        for fare in (12.0, 13.0):
            spark.sql(f"UPDATE cdc_rides SET fare = {fare}")
        HudiTable.for_path(path).services.clean({"hoodie.clean.commits.retained": "1"})
        with pytest.raises(QueryError, match=r"are no longer available: .*Begin later, or retain more"):
            spark.sql(asked).count()
        begin = HudiTable.for_path(path).history().to_pylist()[2]  # after the clean and the last commit
        since = begin["completed"] or begin["requested"]
        last = HudiTable.for_path(path).changes(since).to_arrow().to_pylist()
        assert _images([tuple(row.values()) for row in last]) == [("u", 12.0, 13.0)]
        # few changes are read by the driver, more by tasks
        for small in (cdc_frame._SMALL, 0):
            monkeypatch.setattr(cdc_frame, "_SMALL", small)
            capsys.readouterr()
            frame = HudiTable.for_path(path).changes(since).to_spark(spark)
            frame.explain()
            assert ("MapInArrow" in capsys.readouterr().out) == (not small)
            assert _collected(frame) == [("u", 12.0, 13.0)]
        for log in Path(path).rglob("*.cdc"):
            log.unlink()
        with pytest.raises(QueryError, match=r"are no longer available: 1 files .*\.cdc"):
            HudiTable.for_path(path).changes(since).to_arrow()
    finally:
        spark.sql("DROP TABLE cdc_rides")
        pyhudi.deactivate()


@pytest.mark.parametrize("version", [6, seldom(9)])
def test_logs_of_archived_writes_are_no_orphans(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """Archives of version 6 do not say which change data files a write has made."""
    path = str(tmp_path / "t")
    more = {
        "hoodie__table__cdc__enabled": "true",
        "hoodie__write__table__version": version,
        "hoodie__clean__automatic": "false",
        "hoodie__metadata__enable": "false",
    }
    archival = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    for ts in range(1, 6):
        write(frame(spark, batch(0, 4, ts, f"v{ts}", 1)), path, options("upsert", **more))
    table = HudiTable.for_path(path)
    assert table.services.archive(archival).instants
    assert len(list(Path(path).rglob("*.cdc"))) == 4
    assert table.services.delete_orphan_files().num_rows == 0
