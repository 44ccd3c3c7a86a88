"""Clustering on Spark: layouts, indexes that follow, inline clustering, writers beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConflictError, InvalidOptionError
from pyhudi.services.clustering.clustering_runner import run_pending_clusterings
from pyhudi.spark.services.spark_clustering import SparkClusteringRunner
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.table.meta_client import TableMetaClient
from tests.cases import seldom
from tests.index_contents import indexed_locations, stored_locations
from tests.spark.indexes.indexed_rows import record_indexed
from tests.spark.model import batch, frame

PLAN = "hoodie.clustering.plan.strategy."
ORDER = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]


@pytest.mark.parametrize("layout", [seldom("LINEAR"), seldom("ZORDER"), "HILBERT"])
def test_large_units_are_spread_over_tasks(layout: str, spark: SparkSession, tmp_path: Path):
    """Every file gets a part of the range of what rows are sorted by."""
    path = str(tmp_path / "table")
    rows = spark.range(0, 4096, 1, 2).selectExpr(
        "concat('k', id) id", "named_struct('x', cast(hash(id) as long)) s", "hash(id, 7) y", "timestamp_seconds(id) t",
        "cast(id % 3 as string) p", "cast(id as decimal(9, 2)) d",
    )  # fmt: skip
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    write(rows, path, options)
    table = HudiTable.for_path(path)
    before = table.scan().to_arrow().sort_by(ORDER)
    size = max(pc.sum(table.inspect.file_slices()["base_size"]).as_py() // 6, 1)
    given = {PLAN + "sort.columns": "s.x,y", "hoodie.layout.optimize.strategy": layout}
    plan = table.services.schedule_clustering({**given, PLAN + "target.file.max.bytes": str(size)})
    assert max(plan.outputs) > 1
    opts = Options.parse(given)
    result = run_pending_clusterings(TableMetaClient.open(path), opts, SparkClusteringRunner(spark, sorted_in_task=0))
    assert plan.instant == result.instants[0]
    after = table.scan().to_arrow().sort_by(ORDER)
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    files = [pq.read_table(f"{path}/{name}") for name in result.stats["path"].to_pylist()]
    spans = [_span(pc.struct_field(f["s"], "x")) for f in files]
    whole = _span(pc.struct_field(before["s"], "x"))
    assert len(files) >= sum(plan.outputs)
    if layout == "LINEAR":
        assert max(spans) < 0.75 * whole
    else:  # both columns are narrower than by chance
        others = [_span(f["y"]) for f in files]
        assert sum(x * y for x, y in zip(spans, others, strict=True)) < 0.75 * len(files) * whole * _span(before["y"])


def _span(values: Any) -> float:
    found = pc.min_max(values)
    return float(found["max"].as_py() - found["min"].as_py())


@pytest.mark.parametrize(
    ("table_type", "version"), [seldom(("COPY_ON_WRITE", 9)), seldom(("MERGE_ON_READ", 6)), ("MERGE_ON_READ", 8)]
)
def test_indexes_follow(table_type: str, version: int, spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "table")
    options = record_indexed("upsert", table_type, version)
    for number in range(3):
        write(frame(spark, batch(number * 3, number * 3 + 6, number, f"v{number}", partitions=2)), path, options)
    table = HudiTable.for_path(path)
    if version >= 8:
        table.services.build_index("by_value", ["v"], spark=spark)
    before = table.scan().to_arrow().sort_by(ORDER)
    result = table.services.cluster({PLAN + "sort.columns": "id"}, spark=spark)
    assert result.num_replaced >= 2
    assert indexed_locations(path) == stored_locations(path)
    client = TableMetaClient.open(path)
    assert "record_index" in client.config.metadata_partitions
    assert version < 8 or "secondary_index_by_value" in client.config.metadata_partitions
    after = table.scan().to_arrow().sort_by(ORDER)
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    # keys are found where they are now
    write(frame(spark, batch(0, 9, 5, "new", partitions=2)), path, options)
    assert indexed_locations(path) == stored_locations(path)
    assert table.scan().to_arrow().num_rows == before.num_rows


def test_inline_after_writes(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "table")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clustering.inline.max.commits": "2",
    }
    table = None
    for number, mode in enumerate(["hoodie.clustering.inline"] * 2 + ["hoodie.clustering.schedule.inline"] * 3):
        given = {**options, mode: "true", "hoodie.clustering.async.max.commits": "2"}
        write(spark.createDataFrame([(number, f"v{number}")], "id int, v string").coalesce(1), path, given)
        table = HudiTable.for_path(path)
        actions = table.history()["action"].to_pylist()
        assert actions.count("replacecommit") == (number >= 1)
        assert len(table.services.pending_clusterings()) == (number >= 3)
    assert table is not None
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == list(range(5))

    # writers that touch what is in the plan
    update = {**options, "hoodie.datasource.write.operation": "upsert"}
    row = spark.createDataFrame([(0, "new")], "id int, v string").coalesce(1)
    (plan, *_) = table.services.pending_clusterings()
    with pytest.raises(ConflictError, match=rf"wait for a clustering .*services\.rollback\('{plan.instant}'\)"):
        write(row, path, update)
    with pytest.raises(InvalidOptionError, match="SparkAllowUpdateStrategy"):
        write(row, path, {**update, "hoodie.clustering.updates.strategy": "Mine"})
    write(row, path, {**update, "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"})
    assert table.services.run_clustering(spark=spark).num_files == 1
    assert "new" in table.scan(columns=["v"]).to_arrow()["v"].to_pylist()
