"""Requests of small writes and queries to an object store, each of which takes tens of milliseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.read.selection import table_files
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.spark.model import batch, frame
from tests.unit.storage.s3_server import S3Server, running_s3_server

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


def upsert(spark: SparkSession, s3: S3Server, uri: str, ts: int, table_type: str) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type, **s3.options}
    write(frame(spark, batch(0, 6, ts, f"v{ts}")), uri, options, "append")


@pytest.mark.parametrize(("table_type", "most"), [("COPY_ON_WRITE", 62), ("MERGE_ON_READ", 59)])
def test_a_small_upsert_and_a_query(spark: SparkSession, s3: S3Server, table_type: str, most: int) -> None:
    uri = f"s3://{s3.new_bucket()}/t"
    for ts in (1, 2):
        upsert(spark, s3, uri, ts, table_type)
    with s3.recorded_requests() as requests:
        upsert(spark, s3, uri, 3, table_type)
    assert len(requests) <= most, (len(requests), requests)
    commits = Counter(r for r in requests if r.startswith("GET ") and r.endswith((".commit", ".deltacommit")))
    assert max(commits.values()) <= 1, commits
    for max_requests in (30, 24):  # the metadata table's log files are remembered
        with s3.recorded_requests() as requests:
            assert load_table(spark, uri, s3.options).where("id = 'k3'").count() <= 1
        assert len(requests) <= max_requests, (len(requests), requests)
        delta_commits = Counter(r for r in requests if "metadata/.hoodie/timeline/" in r)
        assert max(delta_commits.values(), default=0) <= 2, delta_commits
    table = HudiTable.for_path(uri, s3.options)
    with s3.recorded_requests() as requests:
        assert table.delete("id = 'k003'", spark=spark).rows_deleted == 1
    assert len(requests) <= 70, (len(requests), requests)
    own = Counter(r for r in requests if "/metadata/" not in r)
    # to pin, begin, update indexes, publish, and for services; to pin, begin, go inflight, publish (2), for services
    assert sum(count for r, count in own.items() if r.endswith(".hoodie/hoodie.properties")) == 5, own
    assert sum(count for r, count in own.items() if r.startswith("LIST ") and r.endswith("/timeline/")) == 6, own


def test_an_upsert_into_buckets_lists_the_timeline_no_more_often(spark: SparkSession, s3: S3Server) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    listings = []
    for index in ({}, buckets):
        uri = f"s3://{s3.new_bucket()}/t"
        for ts in (1, 2):
            options = {**OPTIONS, "hoodie.metadata.enable": "false", **index, **s3.options}
            with s3.recorded_requests() as requests:
                write(frame(spark, batch(0, 6, ts, f"v{ts}")), uri, options, "append")
        listings.append(Counter(r for r in requests if r.startswith("LIST ") and "/timeline/" in r).total())
    assert listings[0] == listings[1], listings


@pytest.mark.parametrize("table_type", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_builds_of_indexes_and_their_validation(spark: SparkSession, s3: S3Server, table_type: str) -> None:
    """Requests of builds do not depend on the number of rows, and a validation reads a data file once, a file of the
    metadata table once on the driver and once in a task. Updates of indexes list the partitions of the write."""
    uri = f"s3://{s3.new_bucket()}/t"
    for ts in (1, 2):
        upsert(spark, s3, uri, ts, table_type)
    services = HudiTable.for_path(uri, s3.options).services
    for name, columns in (("record_index", ()), ("by_v", ("v",))):
        with s3.recorded_requests() as requests:
            services.build_index(name, columns, spark=spark)
        assert len(requests) <= 58, (len(requests), requests)
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type, **s3.options}
    with s3.recorded_requests() as requests:
        write(frame(spark, batch(0, 1, 3, "v3")), uri, options, "append")
    listed = Counter(r for r in requests if r.startswith("LIST ") and r.endswith(("/t/p0/", "t/p0/", "t/p1/")))
    assert {r.rsplit("/", 2)[-2]: count for r, count in listed.items()} == {"p0": 2, "p1": 1}, listed
    with s3.recorded_requests() as requests:
        assert not HudiTable.for_path(uri, s3.options).validate_metadata(indexes=True, spark=spark).num_rows
    assert len(requests) <= 120, (len(requests), requests)
    files = Counter(r for r in requests if r.startswith("GET ") and "/timeline/" not in r and "_" in r.split("/")[-1])
    assert max(count for r, count in files.items() if "/metadata/" in r) == 2, files
    assert max(count for r, count in files.items() if "/metadata/" not in r) <= 2, files


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_folders_of_many_partitions_are_not_listed(
    spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    uri = f"s3://{s3.new_bucket()}/t"
    upsert(spark, s3, uri, 1, table_type)
    assert _listed(s3, lambda: upsert(spark, s3, uri, 2, table_type)), "few folders are listed"
    monkeypatch.setattr(table_files, "_MAX_LISTED_FOLDERS", 0)
    assert not _listed(s3, lambda: upsert(spark, s3, uri, 3, table_type))
    rows = load_table(spark, uri, s3.options).select("id", "ts", "part").collect()
    assert len(rows) == 6
    assert {row["ts"] for row in rows} == {3}
    table = HudiTable.for_path(uri, s3.options)
    services = table.services
    if table_type == "MERGE_ON_READ":
        assert not _listed(s3, lambda: services.compact(dry_run=True))
        assert services.compact(dry_run=True)
    assert not _listed(s3, lambda: services.cluster(dry_run=True))
    deleted, *others = sorted({row["part"] for row in rows})
    assert not _listed(s3, lambda: table.delete_partition([deleted], spark=spark))
    assert not _listed(s3, lambda: table.inspect.partitions())
    assert table.inspect.partitions()["partition"].to_pylist() == others


def _listed(s3: S3Server, call: Callable[[], object]) -> list[str]:
    """Return the listings of partitions by a call."""
    with s3.recorded_requests() as requests:
        call()
    return [r for r in requests if r.startswith("LIST ") and ".hoodie" not in r and not r.endswith(" t/")]
