"""Content of entries: columns, properties, formats, values of partitions, names."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyhudi.catalog_sync.catalogs.catalog_entries import CatalogColumn, CatalogPartition
from pyhudi.catalog_sync.catalogs.catalog_kinds import CatalogKind, catalog_kinds, metastore_address
from pyhudi.catalog_sync.entries.hive_columns import hive_columns, hive_type
from pyhudi.catalog_sync.entries.spark_properties import spark_properties
from pyhudi.catalog_sync.entries.storage_formats import storage_format
from pyhudi.catalog_sync.partitions.partition_changes import partitions_of_paths, plan_changes
from pyhudi.catalog_sync.partitions.partition_extractors import partition_extractor
from pyhudi.catalog_sync.sync_settings import SyncSettings, TableLayout, is_sync_enabled
from pyhudi.config import Options
from pyhudi.config.enums import FileFormat
from pyhudi.errors import CatalogError, ConfigError, InvalidOptionError
from pyhudi.table.config.table_config import TableConfig

TOOL = "hoodie.meta.sync.client.tool.class"
HIVE, LOCATION = "hoodie.datasource.hive_sync.", "file:///tmp/t"
NAMED = {f"{HIVE}metastore.uris": "thrift://host:1"}


def config(**more: str) -> TableConfig:
    keys = {"hoodie.table.name": "Rides", "hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}
    return TableConfig({**keys, **{key.replace("__", "."): value for key, value in more.items()}})


def settings(more: dict[str, str] | None = None, **of_table: str) -> SyncSettings:
    opts = Options.parse({**NAMED, **(more or {})})
    return SyncSettings.from_options(opts, config(**of_table), CatalogKind.HIVE_METASTORE)


@pytest.mark.parametrize(
    ("arrow", "hive"),
    [
        (pa.bool_(), "boolean"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.binary(), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ms"), "timestamp"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.list_(pa.int32()), "array<int>"),
        (pa.map_(pa.string(), pa.float64()), "map<string,double>"),
        (pa.struct([("A", pa.int32()), ("b", pa.list_(pa.date32()))]), "struct<a:int,b:array<date>>"),
    ],
)
def test_types(arrow: pa.DataType, hive: str) -> None:
    assert hive_type(arrow) == hive


def test_columns() -> None:
    commented = pa.field("Id", pa.string(), metadata={"comment": "the key"})
    schema = pa.schema([commented, pa.field("at", pa.timestamp("us", "UTC")), pa.field("day", pa.date32())])
    data, partitioning = hive_columns(schema, ["day", "hour"], timestamps=False, comments=True)
    assert data == (CatalogColumn("id", "string", "the key"), CatalogColumn("at", "bigint"))
    assert partitioning == (CatalogColumn("day", "date"), CatalogColumn("hour", "string"))


def test_properties_for_spark() -> None:
    schema = pa.schema([pa.field("day", pa.date32()), pa.field("id", pa.int64(), nullable=False)])
    made = spark_properties(schema, ["day"], 50, "3.5.0")
    parts = [made[f"spark.sql.sources.schema.part.{i}"] for i in range(int(made["spark.sql.sources.schema.numParts"]))]
    assert len(parts) > 1
    assert {len(part) for part in parts[:-1]} == {50}
    fields = json.loads("".join(parts))["fields"]
    assert [(one["name"], one["type"], one["nullable"]) for one in fields] == [
        ("id", "long", False),
        ("day", "date", True),
    ]
    assert made["spark.sql.sources.provider"] == "hudi"
    assert made["spark.sql.create.version"] == "3.5.0"
    assert (made["spark.sql.sources.schema.numPartCols"], made["spark.sql.sources.schema.partCol.0"]) == ("1", "day")


def test_formats() -> None:
    assert storage_format(FileFormat.PARQUET, realtime=False).input == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    latest = storage_format(FileFormat.PARQUET, realtime=True)
    assert latest.input == "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
    assert storage_format(FileFormat.ORC, realtime=True).serde == "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
    older = storage_format(FileFormat.PARQUET, realtime=True, pre_apache=True)
    assert older.input == "com.uber.hoodie.hadoop.realtime.HoodieRealtimeInputFormat"


@pytest.mark.parametrize(
    ("named", "path", "values"),
    [
        ("MultiPartKeysValueExtractor", "a/p=b/c", ("a", "b", "c")),
        ("SinglePartPartitionValueExtractor", "2024/01/02", ("2024-01-02",)),
        ("HiveStylePartitionValueExtractor", "day=x", ("x",)),
        ("org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor", "2024/1/2", ("2024-01-02",)),
        ("SlashEncodedHourPartitionValueExtractor", "y=2024/m=01/d=02/h=3", ("2024-01-02-03",)),
        ("NonPartitionedExtractor", "a", ()),
    ],
)
def test_values_of_partitions(named: str, path: str, values: tuple[str, ...]) -> None:
    assert partition_extractor(named, 1, hive_style=False)(path) == values


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("MultiPartKeysValueExtractor", "p=a=b"),
        ("HiveStylePartitionValueExtractor", "x"),
        ("SlashEncodedDayPartitionValueExtractor", "2024/13/01"),
        ("SlashEncodedDayPartitionValueExtractor", "2024-01-01"),
    ],
)
def test_paths_of_another_form(named: str, path: str) -> None:
    with pytest.raises(CatalogError, match=r"is not of the form .*partition_extractor_class"):
        partition_extractor(named, 1, hive_style=False)(path)


def test_extractors_by_default_and_of_users() -> None:
    assert partition_extractor(None, 1, hive_style=False)("a/b") == ("a-b",)
    assert partition_extractor("", 1, hive_style=True)("p=a") == ("a",)
    assert partition_extractor(None, 2, hive_style=True)("p=a/q=b") == ("a", "b")
    assert partition_extractor("com.example.Own", 0, hive_style=False)("") == ()
    with pytest.raises(InvalidOptionError, match=r"com\.example\.Own"):
        partition_extractor("com.example.Own", 1, hive_style=False)


def test_changes_of_partitions() -> None:
    wanted = partitions_of_paths(["a", "b", "c"], partition_extractor(None, 1, hive_style=False), LOCATION, ["p"])
    stored = [
        CatalogPartition(("a",), "file:/tmp/t/a"),
        CatalogPartition(("b",), "s3://elsewhere/b"),
        CatalogPartition(("d",), f"{LOCATION}/d"),
        CatalogPartition(("e",), f"{LOCATION}/e"),
    ]
    every = plan_changes(wanted, stored)
    assert [one.values for one in every.add] == [("c",)]
    assert every.move == (CatalogPartition(("b",), f"{LOCATION}/b"),)
    assert [one.values for one in every.keep] == [("a",)]
    assert every.drop == (("d",), ("e",))
    assert plan_changes(wanted, stored, [("d",), ("f",), ("a",)]).drop == (("d",),)


def test_paths_that_do_not_fit_the_columns() -> None:
    multiple = partition_extractor(None, 2, hive_style=False)
    with pytest.raises(CatalogError, match="'a' has 1 values for the partition columns p, q"):
        partitions_of_paths(["a"], multiple, LOCATION, ["p", "q"])
    single = partition_extractor(None, 1, hive_style=False)
    with pytest.raises(CatalogError, match="would be the same partition"):
        partitions_of_paths(["a/b", "a-b"], single, LOCATION, ["p"])


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({}, ["Rides_ro ro", "Rides_rt rt", "Rides rt"]),
        ({"hoodie.meta.sync.sync_snapshot_with_table_name": "false"}, ["Rides_ro ro", "Rides_rt rt"]),
        ({f"{HIVE}skip_ro_suffix": "true", f"{HIVE}table": "x"}, ["x ro", "x_rt rt"]),
        ({f"{HIVE}table.strategy": "ro"}, ["Rides ro"]),
        ({f"{HIVE}table.strategy": "RT"}, ["Rides rt"]),
    ],
)
def test_names_of_a_merge_on_read_table(more: dict[str, str], names: list[str]) -> None:
    found = settings(more, hoodie__table__type="MERGE_ON_READ").names
    assert [f"{one.table} {'ro' if one.read_optimized else ''}{'rt' if one.realtime else ''}" for one in found] == names


def test_settings_of_a_table() -> None:
    one = settings(
        hoodie__database__name="shop",
        hoodie__table__partition__fields="day",
        hoodie__table__keygenerator__type="SIMPLE",
    )
    assert (one.database, [name.table for name in one.names]) == ("shop", ["Rides"])
    assert one.layout.partition_fields == ("day",)
    other = settings({f"{HIVE}database": "mine", f"{HIVE}partition_fields": "y,m", f"{HIVE}base_file_format": "orc"})
    assert (other.database, other.layout.partition_fields) == ("mine", ("y", "m"))
    assert other.layout.file_format is FileFormat.ORC
    lines = settings({f"{HIVE}table_properties": "a=1\nb=x=y", f"{HIVE}serde_properties": "c = 2"}).layout
    assert (lines.properties, lines.serde_properties) == ({"a": "1", "b": "x=y"}, {"c": "2"})
    assert TableLayout(FileFormat.PARQUET, (), partition_extractor(None, 0, hive_style=False)).is_datasource


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({f"{HIVE}mode": "jdbc"}, r"mode=jdbc: HiveServer2 is not asked; set hms.*metastore\.uris=thrift"),
        ({f"{HIVE}mode": "hiveql"}, r"mode=hiveql"),
        ({f"{HIVE}use_jdbc": "true"}, r"use_jdbc=true.*metastore\.uris=thrift"),
        ({f"{HIVE}use_spark_catalog": "true"}, r"use_spark_catalog=true"),
        ({TOOL: "org.apache.hudi.gcp.bigquery.BigQuerySyncTool"}, "BigQuerySyncTool: only Hive metastores and AWS"),
    ],
)
def test_catalogs_that_are_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        catalog_kinds(Options.parse(more))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({f"{HIVE}base_file_format": "HFILE"}, "PARQUET, ORC"),
        ({f"{HIVE}table_properties": "a"}, "key=value in each line"),
    ],
)
def test_values_that_are_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(more)


def test_catalogs_of_options() -> None:
    hive, glue = CatalogKind.HIVE_METASTORE, CatalogKind.GLUE
    tools = "org.apache.hudi.hive.HiveSyncTool,org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
    assert catalog_kinds(Options.parse({})) == (hive,)
    assert catalog_kinds(Options.parse({f"{HIVE}mode": "HMS", f"{HIVE}use_jdbc": "true"})) == (hive,)
    assert catalog_kinds(Options.parse({f"{HIVE}mode": "glue"})) == (glue,)
    assert catalog_kinds(Options.parse({TOOL: tools})) == (hive, glue)
    assert metastore_address(Options.parse(NAMED)).hosts == (("host", 1),)


def test_who_asks_for_a_sync() -> None:
    assert not is_sync_enabled(Options.parse({}))
    assert is_sync_enabled(Options.parse({f"{HIVE}enable": "true"}))
    assert is_sync_enabled(Options.parse({"hoodie.datasource.meta.sync.enable": "true"}))
