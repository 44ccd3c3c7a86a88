"""Writes that upgrade their table, and tables of every version on Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.spark.write.dataframe_writer import write
from tests.golden.expected import unpack
from tests.rows import assert_same_rows
from tests.spark.model import frame, options, rows_of
from tests.spark_arrow import to_arrow

MOR = {"hoodie__datasource__write__table__type": "MERGE_ON_READ"}


def test_a_write_upgrades_when_it_says_so(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")

    def upsert(value: str, seq: int, **more: object) -> int:
        write(frame(spark, [("a", "p", seq, value)]), path, options("upsert", **MOR, **more))
        assert rows_of(path)[0] == ("a", "p", seq, value)
        return HudiTable.for_path(path).config.version

    assert upsert("one", 1, hoodie__write__table__version=6) == 6
    assert upsert("two", 2) == 6
    assert upsert("three", 3, hoodie__write__table__version=9, hoodie__write__auto__upgrade="false") == 6
    with pytest.raises(ConfigError, match=r"hoodie\.payload.delete\.marker"):
        upsert("never", 4, hoodie__write__table__version=9, hoodie__payload__delete__field="v")
    assert HudiTable.for_path(path).config.version == 6
    assert upsert("four", 4, hoodie__write__table__version=8) == 8
    assert upsert("five", 5, hoodie__write__table__version=6) == 8
    assert upsert("six", 6, hoodie__write__auto__upgrade="true") == 9
    assert HudiTable.for_path(path).services.downgrade(6, lossy=True)
    assert upsert("seven", 7) == 6


@pytest.mark.parametrize("name", ["v5_cow_metadata", "v5_mor_metadata"])
def test_a_table_of_version_5_is_upgraded_by_a_write(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = str(unpack(name, tmp_path).path)
    names = ["id", "g", "ts", "v"]
    before = to_arrow(HudiTable.for_path(path).scan(columns=names).to_spark(spark))
    rows = spark.createDataFrame([(7, 1, 9, "new")], "id long, g long, ts long, v string")
    given = {"hoodie.datasource.write.operation": "upsert", "hoodie.write.table.version": "9"}
    write(rows, path, given)
    table = HudiTable.for_path(path)
    assert table.config.version == 9
    expected = [r | {"ts": 9, "v": "new"} if r["id"] == 7 else r for r in before.to_pylist()]
    after = to_arrow(table.scan(columns=names).to_spark(spark))
    assert_same_rows(after, pa.Table.from_pylist(expected, schema=after.schema), names)


def test_updates_of_a_table_whose_log_files_are_named_after_delta_commits(spark: SparkSession, tmp_path: Path) -> None:
    """As Apache Hudi's downgrade to version 6 leaves those of file groups with a pending compaction."""
    path = tmp_path / "table"
    payload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    more = {**MOR, "hoodie__datasource__write__payload__class": payload, "hoodie__metadata__enable": "false"}
    more["hoodie__write__table__version"] = "6"
    for value in ("one", "two"):
        write(frame(spark, [("a", "p", 1, value)]), str(path), options("upsert", **more))
    (log,) = path.glob("p/.*.log.1_*")
    writer = max(HudiTable.for_path(str(path)).history()["requested"].to_pylist())
    file_id, _, rest = log.name.partition("_")
    log.rename(log.with_name(f"{file_id}_{writer}{rest[rest.index('.') :]}"))
    assert rows_of(str(path)) == [("a", "p", 1, "two")]
    write(frame(spark, [("a", "p", 1, "three")]), str(path), options("upsert", **more))
    assert rows_of(str(path)) == [("a", "p", 1, "three")]
