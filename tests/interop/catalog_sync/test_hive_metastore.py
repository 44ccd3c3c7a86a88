"""A real metastore, synced by Apache Hudi and by pyhudi: the entries are the same, and each goes on after the other."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from pyhudi.hive_metastore.metastore_address import MetastoreAddress
from pyhudi.hive_metastore.metastore_client import MetastoreClient
from pyhudi.hive_metastore.metastore_locks import MetastoreLocks
from pyhudi.storage import open_storage
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE
from tests.metastore_server import hive_metastore

HIVE, META = "hoodie.datasource.hive_sync.", "hoodie.meta.sync."
WRITE = "hoodie.datasource.write."
VARYING = {"transient_lastDdlTime", "spark.sql.create.version", "numFiles", "totalSize", "hudi_writer_version"}
LOCK = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hive_metastore(tmp_path_factory.mktemp("metastore"), with_locks=True) as uri:
        yield uri


@pytest.fixture(scope="module")
def hudi(metastore: str) -> Iterator[Oracle]:
    """Apache Hudi in a Spark whose catalog is the metastore."""
    settings = {"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": metastore}
    with Oracle("1.2.0", settings) as oracle:
        yield oracle


def rows(*ids: int, day: str = "2024-01-01", city: str = "oslo", **more: Any) -> pa.Table:
    one = {
        "id": 0,
        "ts": 1,
        "at": dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC),
        "born": dt.date(2000, 1, 1),
        "price": Decimal("1.50"),
        "ok": True,
        "ratio": 0.5,
        "raw": b"x",
        "tags": ["a"],
        "places": {"home": {"street": "s", "No": 1}},
        "day": day,
        "city": city,
        **more,
    }
    kinds = {
        "id": pa.int32(),
        "ts": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(10, 2),
        "places": pa.map_(pa.string(), pa.struct([("street", pa.string()), ("No", pa.int32())])),
    }
    columns = {name: pa.array([value] * len(ids), kinds.get(name)) for name, value in one.items()}
    return pa.table(columns | {"id": pa.array(ids, pa.int32())})


def options(metastore: str, name: str, **more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}precombine.field": "ts",
        "hoodie.embed.timeline.server": "false",
        **NO_METADATA_TABLE,
        f"{HIVE}mode": "hms",
        f"{HIVE}database": "shop",
        f"{HIVE}table": name,
        f"{HIVE}metastore.uris": metastore,
        **more,
    }


def without_keys(sync_options: dict[str, str]) -> dict[str, str]:
    """Return the options of a sync alone."""
    return {key: value for key, value in sync_options.items() if not key.startswith(WRITE)}


def entries(metastore: str, name: str) -> dict[str, Any]:
    """All that the metastore has of a table, without names and times."""
    with MetastoreClient(MetastoreAddress.parse(metastore)) as client:
        table = client.send(lambda api: api.get_table("shop", name))
        partitions = client.send(lambda api: api.get_partitions("shop", name, -1))
    return {
        "type": table.tableType,
        "keys": [(column.name, column.type, column.comment or "") for column in table.partitionKeys],
        "parameters": _parameters(table.parameters),
        "sd": _descriptor(table.sd),
        "partitions": {tuple(one.values): (_parameters(one.parameters), _descriptor(one.sd)) for one in partitions},
    }


def _parameters(stored: dict[str, str]) -> dict[str, Any]:
    kept = {key: value for key, value in stored.items() if key not in VARYING}
    parts = sorted(key for key in kept if ".schema.part." in key)
    schema = "".join(kept.pop(part) for part in parts)
    return {**kept, "schema": json.loads(schema) if schema else None}


def _descriptor(sd: Any) -> dict[str, Any]:
    return {
        "columns": [(column.name, column.type, column.comment or "") for column in sd.cols],
        "location": _path(sd.location),
        "formats": (sd.inputFormat, sd.outputFormat, sd.serdeInfo.serializationLib),
        "serde": {key: _path(value) for key, value in (sd.serdeInfo.parameters or {}).items()},
    }


def _path(uri: str) -> str:
    """Return a path without its scheme, which Apache Hudi has as the user writes it."""
    return uri.removeprefix("file:").replace("///", "/")


CASES: dict[str, dict[str, str]] = {
    "single": {f"{WRITE}partitionpath.field": "city"},
    "hive_style": {f"{WRITE}partitionpath.field": "day,city", f"{WRITE}hive_style_partitioning": "true"},
    "days": {
        f"{WRITE}partitionpath.field": "day",
        f"{HIVE}partition_extractor_class": "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor",
        f"{HIVE}partition_fields": "datestr",
    },
    "unpartitioned": {f"{HIVE}support_timestamp": "false", f"{HIVE}omit_metadata_fields": "true"},
    "merge_on_read": {f"{WRITE}partitionpath.field": "city", f"{WRITE}table.type": "MERGE_ON_READ"},
    "own": {
        f"{WRITE}partitionpath.field": "city",
        f"{HIVE}sync_as_datasource": "false",
        f"{HIVE}create_managed_table": "true",
        f"{HIVE}table_properties": "a=1\nb=2",
        f"{HIVE}serde_properties": "c=3",
        f"{HIVE}schema_string_length_thresh": "300",
    },
}


@pytest.mark.parametrize(
    "case", [case if case == "merge_on_read" else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_the_entries_are_the_same(hudi: Oracle, metastore: str, tmp_path: Path, case: str) -> None:
    path, more = tmp_path / "table", CASES[case]
    day = "2024/01/02" if case == "days" else "2024-01-02"
    theirs = options(metastore, f"{case}_theirs", **{f"{HIVE}enable": "true"}, **more)
    hudi.write(path, rows(1, 2, day=day), theirs)
    table = HudiTable.for_path(str(path))
    ours = without_keys(options(metastore, f"{case}_ours", **more))
    suffixes = ("_ro", "_rt", "") if case == "merge_on_read" else ("",)

    def compare() -> None:
        for suffix in suffixes:
            assert entries(metastore, f"{case}_ours{suffix}") == entries(metastore, f"{case}_theirs{suffix}")

    assert table.services.sync_catalog(ours).is_changed
    compare()
    # each goes on where the other one has synced
    hudi.write(path, rows(3, day=day.replace("02", "03"), city="moss", extra=1.5), theirs)
    swapped = {**theirs, f"{HIVE}table": f"{case}_ours"}
    hudi.write(path, rows(4, day=day, city="bodo", extra=1.5), swapped)
    assert table.services.sync_catalog({**ours, f"{HIVE}table": f"{case}_theirs"}).is_changed
    compare()
    assert not table.services.sync_catalog(ours).is_changed
    if case not in ("own", "days"):
        found = hudi.sql(f"SELECT id, city FROM shop.{case}_ours ORDER BY id")
        assert found["id"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["0.15.0", "1.0.2"], indirect=True)
@pytest.mark.parametrize("case", ["hive_style", "merge_on_read"])
def test_entries_of_earlier_releases(oracle: Oracle, metastore: str, tmp_path: Path, case: str) -> None:
    path, more, name = tmp_path / "table", CASES[case], f"{case}_{oracle.release.replace('.', '')}"
    theirs = options(metastore, f"{name}_theirs", **{f"{HIVE}enable": "true"}, **more)
    oracle.write(path, rows(1, 2), theirs)
    services = HudiTable.for_path(str(path)).services
    services.sync_catalog(without_keys(options(metastore, f"{name}_ours", **more)))
    oracle.write(path, rows(3, city="moss", extra=1.5), {**theirs, f"{HIVE}table": f"{name}_ours"})
    services.sync_catalog(without_keys(options(metastore, f"{name}_theirs", **more)))
    for suffix in ("_ro", "_rt", "") if case == "merge_on_read" else ("",):
        mine, other = entries(metastore, f"{name}_ours{suffix}"), entries(metastore, f"{name}_theirs{suffix}")
        if oracle.release == "0.15.0":
            mine, other = (_as_of_0_15(one) for one in (mine, other))
        assert mine == other


def _as_of_0_15(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only 0.15 says: completion times of version 6, from the times of files, and arrays without
    nulls."""
    kept = {key: value for key, value in found["parameters"].items() if key != "last_commit_completion_time_sync"}
    text = json.dumps(kept).replace('"containsNull": true', '"containsNull": false')
    return {**found, "parameters": json.loads(text)}


@pytest.mark.slow
def test_dropped_partitions_and_comments(hudi: Oracle, metastore: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    named = {f"{WRITE}partitionpath.field": "city", f"{HIVE}sync_comment": "true"}
    theirs = options(metastore, "drop_theirs", **{f"{HIVE}enable": "true"}, **named)
    ours = without_keys(options(metastore, "drop_ours", **named))
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {"comment": f"the {name}"}}
        for name, kind in (("id", "integer"), ("ts", "long"), ("city", "string"))
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    some = rows(1, 2).select(["id", "ts", "city"])
    hudi.write(path, some, theirs, schema=schema)
    hudi.write(path, rows(3, city="moss").select(["id", "ts", "city"]), theirs, schema=schema)
    table = HudiTable.for_path(str(path))
    table.services.sync_catalog(ours)
    mine, other = entries(metastore, "drop_ours"), entries(metastore, "drop_theirs")
    assert mine["sd"] == other["sd"]
    assert mine["keys"] == other["keys"]
    assert ("id", "int", "the id") in mine["sd"]["columns"]
    drop = {**theirs, f"{WRITE}operation": "delete_partition", f"{WRITE}partitions.to.delete": "moss"}
    hudi.write(path, some.slice(0, 1), drop)
    assert table.services.sync_catalog(ours).tables[0].partitions_dropped == 1
    mine, other = entries(metastore, "drop_ours"), entries(metastore, "drop_theirs")
    assert mine["partitions"].keys() == other["partitions"].keys()


@pytest.mark.slow
def test_values_of_partitions_that_are_encoded(hudi: Oracle, metastore: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    named = {f"{WRITE}partitionpath.field": "city", f"{WRITE}partitionpath.urlencode": "true"}
    hudi.write(path, rows(1, city="a/b c"), options(metastore, "coded_theirs", **{f"{HIVE}enable": "true"}, **named))
    ours = options(metastore, "coded_ours")
    HudiTable.for_path(str(path)).services.sync_catalog(ours)
    assert entries(metastore, "coded_ours") == entries(metastore, "coded_theirs")


@pytest.mark.slow
def test_our_table_is_read_by_name(hudi: Oracle, spark: SparkSession, metastore: str, tmp_path: Path) -> None:
    path = tmp_path / "table"
    named = {f"{WRITE}partitionpath.field": "city", f"{WRITE}table.type": "MERGE_ON_READ", f"{HIVE}enable": "true"}
    ours = options(metastore, "made_by_us", **named)
    for key, city in ((1, "oslo"), (2, "moss")):
        frame = spark.createDataFrame([(key, 1, city)], "id int, ts long, city string")
        frame.write.format("hudi").options(**ours).mode("append").save(str(path))
    for name in ("made_by_us", "made_by_us_ro"):
        found = hudi.sql(f"SELECT id, city FROM shop.{name} WHERE city = 'moss'")
        assert found.to_pylist() == [{"id": 2, "city": "moss"}]
    hudi.sql("INSERT INTO shop.made_by_us VALUES (3, 1, 'bodo')", "SELECT 1")
    assert sorted(HudiTable.for_path(str(path)).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_their_write_waits_for_our_lock(hudi: Oracle, spark: SparkSession, metastore: str, tmp_path: Path) -> None:
    path, lock = tmp_path / "table", "hoodie.write.lock."
    several = {
        "hoodie.table.name": "t",
        f"{WRITE}recordkey.field": "id",
        f"{WRITE}precombine.field": "ts",
        "hoodie.embed.timeline.server": "false",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        f"{lock}provider": LOCK,
        f"{lock}hivemetastore.uris": metastore,
        f"{lock}hivemetastore.database": "shop",
        f"{lock}hivemetastore.table": "locked",
        f"{lock}client.wait_time_ms_between_retry": "200",
    }
    ours = spark.createDataFrame([(1, 1)], "id int, ts long")
    ours.write.format("hudi").options(**several).mode("append").save(str(path))
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        with make_lock_provider(open_storage(path), several) as held:
            held.ensure_held()
            theirs = pool.submit(hudi.write, path, rows(2).select(["id", "ts"]), several)
            with MetastoreClient(MetastoreAddress.parse(metastore)) as client:
                locks = MetastoreLocks(client, "shop", "locked", "host", "test")
                while len(locks.entries()) < 2:
                    assert not theirs.done()
                    assert time.monotonic() - begun < 120
                    time.sleep(0.01)
                assert "pyhudi process" in locks.entries()[0].agent
        theirs.result()
    assert sorted(HudiTable.for_path(str(path)).scan().to_arrow()["id"].to_pylist()) == [1, 2]
