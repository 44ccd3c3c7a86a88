"""Writes to merge-on-read tables with ORC base files, and on an object store: no folders, no renames, no appends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.write.write_result import WriteResult
from tests.cases import each_choice
from tests.spark.model import Model, Row, batch, frame
from tests.spark.write.log_files import merge_on_read
from tests.unit.storage.s3_server import running_s3_server

COLUMNS = ("id", "part", "ts", "v")


@dataclass
class Place:
    """Where a table is, and the options that it needs."""

    uri: str
    options: dict[str, str] = field(default_factory=dict)
    base_extension: str = "parquet"

    @property
    def table(self) -> HudiTable:
        return HudiTable.for_path(self.uri, self.options)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "orc":
        yield Place(str(tmp_path / "table"), {"hoodie.table.base.file.format": "ORC"}, "orc")
        return
    with running_s3_server() as server:
        yield Place(f"s3://{server.new_bucket()}/table", dict(server.options))


@pytest.mark.parametrize(("place", "version"), each_choice(["orc", "s3"], [9, 6]), indirect=["place"])
def test_the_life_of_a_table(spark: SparkSession, place: Place, version: int) -> None:
    model = Model()

    def step(operation: str, rows: list[Row]) -> WriteResult:
        if operation == "delete":
            model.delete(rows)
        else:
            model.upsert(rows)
        return write(frame(spark, rows), place.uri, merge_on_read(operation, version) | place.options, "append")

    def check(*, spark_too: bool = False) -> None:
        if spark_too:
            found = load_table(spark, place.uri, place.options).select(*COLUMNS).collect()
            assert sorted(map(tuple, found), key=repr) == model.rows
            some = load_table(spark, place.uri, place.options).where("part = 'p1' and ts > 10").select("id").collect()
            assert sorted(r[0] for r in some) == [r[0] for r in model.rows if r[1] == "p1" and r[2] > 10]
        found = place.table.scan(columns=list(COLUMNS)).to_arrow().to_pylist()
        assert sorted((tuple(row[c] for c in COLUMNS) for row in found), key=repr) == model.rows

    step("bulk_insert", batch(0, 30, 10, "bulk"))
    step("upsert", [*batch(0, 5, 9, "late"), *batch(5, 20, 11, "new"), *batch(30, 35, 1, "fresh")])
    step("delete", batch(10, 16, 0, ""))
    check(spark_too=True)
    slices = place.table.inspect.file_slices()
    assert any(slices["log_paths"].to_pylist())
    assert {p.rpartition(".")[2] for p in slices["base_path"].drop_null().to_pylist()} == {place.base_extension}
    services = place.table.services
    services.schedule_compaction()
    step("upsert", [*batch(10, 12, 12, "beside"), *batch(3, 4, 20, "beside")])
    assert services.run_compaction().num_log_files
    check()
    step("upsert", batch(0, 8, 30, "after"))
    check()
    if version == 9:
        assert services.log_compact({"hoodie.log.compaction.blocks.threshold": "1"})
        check()
    services.compact()
    check(spark_too=True)
    assert not any(place.table.inspect.file_slices()["log_paths"].to_pylist())
    optimized = place.table.scan(read_optimized=True, columns=["id"]).to_arrow()
    assert optimized.num_rows == len(model.rows)
