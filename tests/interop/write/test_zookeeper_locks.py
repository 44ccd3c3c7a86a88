"""Locks in ZooKeeper: writers of Apache Hudi and ours exclude each other."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from kazoo.client import KazooClient
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from pyhudi.storage import open_storage
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE
from tests.interop.harness.oracle import Oracle
from tests.zookeeper_server import zookeeper_server

LOCK = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"


def _rows(first: int) -> pa.Table:
    return pa.table({"id": pa.array([first, first + 1]), "part": ["a", "b"], "ts": pa.array([1, 1])})


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_their_write_waits_for_our_lock(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    with zookeeper_server(tmp_path) as server:
        options = {
            **OPTIONS,
            **SIMPLE,
            "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.provider": LOCK,
            "hoodie.write.lock.zookeeper.url": server,
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": "t",
        }
        ours = spark.createDataFrame(_rows(0).to_pandas())
        ours.write.format("hudi").options(**options).mode("append").save(str(path))
        client = KazooClient(server)
        client.start()
        with ThreadPoolExecutor(1) as pool:
            with make_lock_provider(open_storage(path), options):
                theirs = pool.submit(oracle.write, path, _rows(2), options)
                deadline = time.monotonic() + 120
                while len(client.get_children("/hudi/t")) < 2:
                    assert not theirs.done()
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                assert sum(name.startswith("_c_") for name in client.get_children("/hudi/t")) == 1
            theirs.result()
        client.stop()
        client.close()
    assert sorted(HudiTable.for_path(str(path)).scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
