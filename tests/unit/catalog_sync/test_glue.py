"""Syncs to AWS Glue, of moto."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import moto
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.catalog_sync.catalogs.glue_catalog import GlueCatalog
from pyhudi.catalog_sync.catalogs.glue_entries import s3_uri
from pyhudi.catalog_sync.sync_result import TableSyncResult
from pyhudi.errors import CatalogError, ConfigError
from pyhudi.timeline.instant import Action
from tests.tables import SCHEMA, HandMadeTable, at

ROW = {"id": "1", "p": "a", "v": 1}
OPTIONS = {
    "hoodie.datasource.hive_sync.mode": "glue",
    "hoodie.datasource.meta.sync.glue.database_name": "Shop",
    "hoodie.aws.glue.region": "us-east-1",
    "hoodie.aws.access.key": "id",
    "hoodie.aws.secret.key": "secret",
}


@pytest.fixture
def glue() -> Iterator[Any]:
    with moto.mock_aws():
        yield boto3.client("glue", region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="secret")


@pytest.fixture
def table(tmp_path: Path) -> HandMadeTable:
    made = HandMadeTable(tmp_path / "t")
    made.write(1, {("a", "f1"): [ROW], ("b", "f2"): [ROW]})
    return made


def sync(table: HandMadeTable, **more: str) -> tuple[TableSyncResult, ...]:
    named = {key.replace("__", "."): value for key, value in more.items()}
    return HudiTable.for_path(str(table.root)).services.sync_catalog({**OPTIONS, **named}).tables


def test_the_region_of_the_environment(glue: Any, table: HandMadeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_REGION, which Amazon's client for Java reads, and boto3 does not."""
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    options = {key: value for key, value in OPTIONS.items() if key != "hoodie.aws.glue.region"}
    HudiTable.for_path(str(table.root)).services.sync_catalog(options)
    assert glue.get_table(DatabaseName="shop", Name="t")


def partitions(glue: Any) -> dict[tuple[str, ...], dict[str, Any]]:
    found = glue.get_partitions(DatabaseName="shop", TableName="t")["Partitions"]
    return {tuple(one["Values"]): one["StorageDescriptor"] for one in found}


def test_the_life_of_a_table(glue: Any, table: HandMadeTable) -> None:
    assert sync(table) == (TableSyncResult("shop", "t", is_created=True, partitions_added=2),)
    stored = glue.get_table(DatabaseName="shop", Name="t")["Table"]
    assert stored["Parameters"]["hudi.metadata-listing-enabled"] == "FALSE"
    assert stored["Parameters"]["last_commit_time_sync"] == at(1)
    assert stored["StorageDescriptor"]["InputFormat"] == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert [(one["Name"], one["Type"]) for one in stored["PartitionKeys"]] == [("p", "string")]
    assert sync(table) == (TableSyncResult("shop", "t"),)
    wider = pa.schema([*SCHEMA, pa.field("w", pa.float64())])
    table.write(2, {("c", "f3"): [{**ROW, "w": 0.5}]}, schema=wider)
    replaced = [("a", "f1")]
    table.write(3, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=replaced, recorded=wider)
    changed = TableSyncResult("shop", "t", is_altered=True, partitions_added=1, partitions_dropped=1)
    assert sync(table, hoodie__datasource__meta__sync__glue__metadata_file_listing="true") == (changed,)
    assert set(partitions(glue)) == {("b",), ("c",)}
    assert {one["Columns"][-1]["Name"] for one in partitions(glue).values()} == {"w"}
    stored = glue.get_table(DatabaseName="shop", Name="t")["Table"]
    assert stored["Parameters"]["hudi.metadata-listing-enabled"] == "TRUE"
    assert stored["StorageDescriptor"]["Columns"][-1] == {"Name": "w", "Type": "double", "Comment": ""}


def test_repairs_in_batches(glue: Any, table: HandMadeTable) -> None:
    table.write(2, {(f"c{i}", f"g{i}"): [ROW] for i in range(5)})
    sync(table, hoodie__datasource__hive_sync__batch_num="3")
    assert len(partitions(glue)) == 7
    glue.delete_partition(DatabaseName="shop", TableName="t", PartitionValues=["a"])
    repaired = sync(table, hoodie__meta__sync__incremental="false", hoodie__datasource__hive_sync__batch_num="2")
    assert repaired == (TableSyncResult("shop", "t", partitions_added=1),)


def test_what_is_refused(glue: Any, table: HandMadeTable) -> None:
    with pytest.raises(CatalogError, match=r"AWS Glue in us-east-1 has no database 'Shop'"):
        sync(table, hoodie__datasource__hive_sync__auto_create_database="false")
    glue.create_database(DatabaseInput={"Name": "shop"})
    glue.create_table(DatabaseName="shop", TableInput={"Name": "t", "Parameters": {"classification": "csv"}})
    with pytest.raises(CatalogError, match=r"shop\.t in the catalog is a table of another format"):
        sync(table)
    with pytest.raises(ConfigError, match="must be set together"):
        sync(table, hoodie__aws__secret__key="")
    with pytest.raises(ConfigError, match=r"hoodie\.aws\.role\.arn is not supported"):
        sync(table, hoodie__aws__role__arn="arn:aws:iam::1:role/r")


def test_locations() -> None:
    assert [s3_uri(one) for one in ("s3a://b/t", "s3://b/t", "file:///t")] == ["s3://b/t", "s3://b/t", "file:///t"]


def test_partitions_that_glue_returns_later(glue: Any, table: HandMadeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(table)
    send, calls = GlueCatalog._send, []

    def one_by_one(self: GlueCatalog, request: str, **arguments: Any) -> Any:
        if request != "batch_get_partition":
            return send(self, request, **arguments)
        wanted = arguments.pop("PartitionsToGet")
        calls.append(len(wanted))
        return {**send(self, request, **arguments, PartitionsToGet=wanted[:1]), "UnprocessedKeys": wanted[1:]}

    monkeypatch.setattr(GlueCatalog, "_send", one_by_one)
    gone = [("a", "f1"), ("b", "f2")]
    table.write(2, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=gone)
    assert sync(table) == (TableSyncResult("shop", "t", partitions_dropped=2),)
    assert calls == [2, 1]
    assert partitions(glue) == {}


@pytest.mark.parametrize("fails", ["batch_update_partition", "update_table"])
def test_new_columns_after_a_failure(
    glue: Any, table: HandMadeTable, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    sync(table)
    table.write(2, {("a", "f1"): [{**ROW, "w": 0.5}]}, schema=pa.schema([*SCHEMA, pa.field("w", pa.float64())]))
    send = GlueCatalog._send

    def failing(self: GlueCatalog, request: str, **arguments: Any) -> Any:
        if request == fails:
            raise CatalogError("no answer")
        return send(self, request, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(GlueCatalog, "_send", failing)
        with pytest.raises(CatalogError, match="no answer"):
            sync(table)
    sync(table)
    stored = glue.get_table(DatabaseName="shop", Name="t")["Table"]["StorageDescriptor"]
    assert {one["Columns"][-1]["Name"] for one in (stored, *partitions(glue).values())} == {"w"}
