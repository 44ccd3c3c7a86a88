"""Apache Hudi and pyhudi write in turns to tables whose index says where a key belongs, and find each other's keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.table.meta_client import TableMetaClient
from tests.cases import seldom
from tests.interop.harness.alternating_writes import OPTIONS as TABLE
from tests.interop.harness.alternating_writes import SIMPLE, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle

PLANNED_BY = "org.apache.hudi.client.clustering.plan.strategy."
RUN_BY = "org.apache.hudi.client.clustering.run.strategy."
UPDATED_BY = "org.apache.hudi.client.clustering.update.strategy."
OPTIONS = {**TABLE, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
COMPLEX = {
    "hoodie.datasource.write.recordkey.field": "id,num",
    "hoodie.bucket.index.hash.field": "num",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
CASES = [
    seldom(("0.15.0", "COPY_ON_WRITE", SIMPLE)),
    seldom(("0.15.0", "MERGE_ON_READ", COMPLEX)),
    seldom(("1.0.2", "MERGE_ON_READ", SIMPLE)),
    seldom(("1.1.1", "COPY_ON_WRITE", COMPLEX)),
    seldom(("1.2.0", "COPY_ON_WRITE", COMPLEX)),
    ("1.2.0", "MERGE_ON_READ", SIMPLE),
]


@pytest.mark.parametrize(("oracle", "table_type", "keys"), CASES, indirect=["oracle"])
def test_buckets_in_turns(
    oracle: Oracle, table_type: str, keys: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    both = AlternatingWrites(
        tmp_path / "table", oracle, spark, {**OPTIONS, **keys, "hoodie.datasource.write.table.type": table_type}
    )
    both.write("theirs", rows(0, 20, 1, "a"))
    both.write("ours", rows(10, 30, 2, "b"))
    both.check()
    both.write("theirs", rows(5, 35, 3, "c"))
    both.write("ours", rows(0, 4, 4, ""), "delete")
    both.write("ours", rows(40, 50, 4, "d"), "bulk_insert")
    both.check()
    both.write("theirs", rows(30, 45, 5, "e"))
    both.check()
    groups = HudiTable.for_path(str(both.path)).inspect.file_slices().to_pylist()
    assert len({(row["partition"], row["file_id"][:8]) for row in groups}) == len(groups)


@pytest.mark.parametrize("oracle", [seldom("1.0.2"), seldom("1.1.1"), "1.2.0"], indirect=True)
def test_consistent_hashing_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    engine = {
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    for first, second in (("theirs", "ours"), ("ours", "theirs")):
        both = AlternatingWrites(tmp_path / first, oracle, spark, {**OPTIONS, **SIMPLE, **engine})
        both.write(first, rows(0, 20, 1, "a"))
        both.write(second, rows(10, 30, 2, "b"))
        both.write(first, rows(5, 35, 3, "c"))
        both.write(second, rows(0, 4, 4, ""), "delete")
        both.check()


def _call_clustering(both: AlternatingWrites, op: str, options: dict[str, str]) -> None:
    told = ("hoodie.bucket.", "hoodie.clustering.", "hoodie.index.", "hoodie.datasource.write.recordkey.")
    text = ",".join(f"{key}={value}" for key, value in options.items() if key.startswith(told))
    both.oracle.sql(f"CALL run_clustering(op => '{op}', path => '{both.path}', options => '{text}')")


@pytest.mark.parametrize("oracle", [seldom("1.0.2"), "1.2.0"], indirect=True)
def test_buckets_that_either_side_splits_and_merges(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    engine = {
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.bucket.index.min.num.buckets": "1",
        "hoodie.bucket.index.max.num.buckets": "8",
        "hoodie.clustering.plan.strategy.class": PLANNED_BY + "SparkConsistentBucketClusteringPlanStrategy",
        "hoodie.clustering.execution.strategy.class": RUN_BY + "SparkConsistentBucketClusteringExecutionStrategy",
    }
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **engine})
    splits = {**both.options, "hoodie.bucket.index.split.threshold": "0.000001"}
    merges = {**both.options, "hoodie.bucket.index.split.threshold": "1000"}

    def groups() -> int:
        return int(HudiTable.for_path(str(both.path)).inspect.file_slices().num_rows)

    both.write_keys("theirs", 0, 40)
    both.write_keys("ours", 20, 60)
    services = HudiTable.for_path(str(both.path)).services
    before = groups()
    plan = services.schedule_clustering(splits)
    assert plan.outputs
    _call_clustering(both, "execute", splits)
    assert not services.pending_clusterings()
    both.check()
    for side in ("ours", "theirs"):
        both.write_keys(side, 10, 70)
        both.check()
    split = groups()
    assert split > before
    _call_clustering(both, "schedule", merges)
    (theirs,) = services.pending_clusterings()
    assert theirs.extra
    assert services.run_clustering(options=merges).instants == (theirs.instant,)
    assert groups() < split
    both.check()
    for side in ("theirs", "ours"):
        both.write_keys(side, 0, 80)
        both.check()


@pytest.mark.parametrize("oracle", [seldom("0.15.0")], indirect=True)
def test_updates_during_a_resize_that_is_rolled_back(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi writes them to the old and to the new buckets. If the latter stay, it reads them when archival has
    passed the resize."""
    options = {
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.bucket.index.max.num.buckets": "8",
        "hoodie.bucket.index.split.threshold": "0.000001",
        "hoodie.clustering.plan.strategy.class": PLANNED_BY + "SparkConsistentBucketClusteringPlanStrategy",
        "hoodie.clustering.execution.strategy.class": RUN_BY + "SparkConsistentBucketClusteringExecutionStrategy",
        "hoodie.clustering.updates.strategy": UPDATED_BY + "SparkConsistentBucketDuplicateUpdateStrategy",
        "hoodie.compact.inline": "false",
    }
    archiving = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
    }
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **options})
    both.write_keys("theirs", 0, 40)
    _call_clustering(both, "schedule", both.options)
    services = HudiTable.for_path(str(both.path)).services
    (plan,) = services.pending_clusterings()
    both.write_keys("theirs", 0, 20)
    assert list(both.path.rglob(f".*_{plan.instant}.log.*"))
    both.check()
    left = AlternatingWrites(
        Path(shutil.copytree(both.path, tmp_path / "left")), oracle, spark, {**both.options, **archiving}
    )
    (left.path / f".hoodie/{plan.instant}.replacecommit.requested").unlink()
    assert plan.instant is not None
    services.rollback(plan.instant)
    both.check()
    both.options |= archiving
    for table in (both, left):
        for _ in range(7):
            table.write_keys("theirs", 30, 40)
        start = TableMetaClient.open(str(table.path)).active_timeline().timeline.start
        assert start is not None
        assert start > plan.instant
    both.check()
    assert oracle.read(left.path, {"hoodie.metadata.enable": "false"}).num_rows > 40


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_apache_hudi_goes_on_with_our_buckets(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE})
    both.write("ours", rows(0, 20, 1, "a"), "bulk_insert")
    both.write("theirs", rows(10, 30, 2, "b"))
    both.check()
