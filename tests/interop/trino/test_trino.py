"""Tables synced to a Hive metastore, read by Trino: the rows are those that pyhudi reads from the base files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from tests.golden.expected import NAMES, unpack
from tests.interop.trino.trino_process import Trino, TrinoError, find_java, has_maven
from tests.metastore_server import hive_metastore
from tests.rows import assert_same_rows

pytestmark = pytest.mark.skipif(not os.environ.get("PYHUDI_TEST_TRINO"), reason="make trino runs it")

HIVE, WRITE = "hoodie.datasource.hive_sync.", "hoodie.datasource.write."
KEYS = {f"{WRITE}recordkey.field": "id", f"{WRITE}precombine.field": "ts"}
PARTITION = f"{WRITE}partitionpath.field"
HIVE_STYLE = {f"{WRITE}hive_style_partitioning": "true"}
MERGE_ON_READ = {f"{WRITE}table.type": "MERGE_ON_READ"}
ARCHIVED = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
COLUMNS = """
    CAST(id AS INT) AS id, {round}L AS ts, IF(id % 2 = 0, NULL, id % 3 = 0) AS flag, CAST(id / 4 AS FLOAT) AS single,
    id / 8 * {round} AS double, CONCAT('é', id, '-', {round}) AS name, ENCODE(CONCAT('b', id), 'UTF-8') AS raw,
    DATE_ADD(DATE '1969-12-28', CAST(id AS INT)) AS born,
    TIMESTAMP '1969-12-31 23:59:59.123456' + id * INTERVAL 1 HOUR AS at,
    TIMESTAMP_NTZ '1969-12-31 23:59:59.654321' AS local, CAST(id * {round} / 100 AS DECIMAL(10, 2)) AS price,
    CAST(-id * 1e20 AS DECIMAL(30, 4)) AS total, IF(id % 2 = 0, ARRAY(), ARRAY('a', NULL)) AS tags,
    MAP('k', id, 'n', NULL) AS counts, MAP('p', STRUCT(CAST(id AS DECIMAL(12, 3)) AS q)) AS structs,
    STRUCT(CAST(id AS INT) AS x, STRUCT(ARRAY(id, NULL) AS Y, DATE '2000-02-29' AS d) AS More) AS nested,
    IF(id % 3 = 0, 'oslo', 'moss') AS city
"""


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as uri:
        yield uri


@pytest.fixture(scope="module")
def trino(metastore: str) -> Iterator[Trino]:
    java = find_java()
    if java is None or not has_maven():
        pytest.skip("Trino needs Java 25 (PYHUDI_TRINO_JAVA_HOME) and Maven")
    with Trino(java, metastore) as running:
        yield running


def sync(table: HudiTable, metastore: str, name: str, **more: str) -> list[str]:
    """Make the entries of a table; return their names."""
    options = {f"{HIVE}metastore.uris": metastore, f"{HIVE}table": name, f"{HIVE}support_timestamp": "true"}
    named = {f"{HIVE}{key}": value for key, value in more.items()}
    return [one.table for one in table.services.sync_catalog({**options, **named}).tables]


def check(trino: Trino, table: HudiTable, names: list[str]) -> None:
    """Check that Trino has the rows of the base files under all names."""
    expected = table.scan(read_optimized=True).to_arrow()
    for name in names:
        assert_same_rows(trino.table(name, expected.schema), expected)


LIMITS = {
    "v8_cow_alter": "10 rows, expected 10",  # a renamed column is null in older files
    "v8_mor_rollback_lsm": "does not support Parquet file reader",
    "v9_cow_complex_keys": r"Can not parse partition value '\\N'",
    "v9_cow_ts_keygen": r"Invalid partition value '2023-11-\d\d' for BIGINT",
    "v9_mor_mixed_formats": "File format ORC not supported",
}
"""Golden tables, all of them by Apache Hudi, that Trino cannot read, and what it says."""


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_apache_hudi(trino: Trino, metastore: str, tmp_path: Path, name: str) -> None:
    table = HudiTable.for_path(str(unpack(name, tmp_path).path))
    names = sync(table, metastore, name)
    if name not in LIMITS:
        check(trino, table, names)
        return
    with pytest.raises((TrinoError, AssertionError), match=LIMITS[name]):
        check(trino, table, names)


def save(spark: SparkSession, path: Path, columns: str, keys: tuple[int, int], options: dict[str, str]) -> HudiTable:
    """Write rows with SQL expressions of ``id``, for a range of it."""
    rows = spark.sql(f"SELECT {columns} FROM range({keys[0]}, {keys[1]})")
    rows.write.format("hudi").options(**{"hoodie.table.name": "t", **KEYS, **options}).mode("append").save(str(path))
    return HudiTable.for_path(str(path))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("merge_on_read", [False, True], ids=["cow", "mor"])
def test_types(
    spark: SparkSession, trino: Trino, metastore: str, tmp_path: Path, version: int, merge_on_read: bool
) -> None:
    options = {
        "hoodie.write.table.version": str(version),
        PARTITION: "city",
        **(MERGE_ON_READ if merge_on_read else {}),
    }
    save(spark, tmp_path, COLUMNS.format(round=1), (0, 20), options)
    save(spark, tmp_path, COLUMNS.format(round=2), (5, 12), options)
    table = save(spark, tmp_path, COLUMNS.format(round=3), (0, 3), {**options, f"{WRITE}operation": "delete"})
    names = sync(table, metastore, f"types_{version}_{merge_on_read}".lower())
    check(trino, table, names)
    rows = table.scan(read_optimized=True).to_arrow()
    for condition, found in {
        "city = 'oslo'": pc.equal(rows["city"], "oslo"),
        "at < TIMESTAMP '1970-01-01 00:00:00'": pc.equal(rows["id"], 0),
        "nested.x = 7": pc.equal(rows["id"], 7),
        "flag IS NULL": pc.is_null(rows["flag"]),
    }.items():
        assert_same_rows(trino.table(names[0], rows.schema, condition), rows.filter(found))
    assert trino.rows(f'SELECT SUM(price), MAX(born) FROM "{names[0]}"') == [
        [str(pc.sum(rows["price"]).as_py()), str(pc.max(rows["born"]).as_py())]
    ]


FEW = "CAST(id AS INT) AS id, {round}L AS ts, 'n{round}' AS name, "
DAY = "DATE_ADD(DATE '2024-02-28', CAST(id % 3 AS INT)) AS day"


@pytest.mark.parametrize(
    ("columns", "options", "condition", "keys"),
    [
        (
            "CONCAT('a/b %é=', id % 2) AS city",
            {f"{WRITE}partitionpath.urlencode": "true"},
            "city = 'a/b %é=1'",
            (1, 3, 5, 7),
        ),
        (
            "CONCAT('a/b:', id % 2) AS City",
            {f"{WRITE}partitionpath.urlencode": "true", **HIVE_STYLE},
            "city = 'a/b:1'",
            (1, 3, 5, 7),
        ),
        (f"{DAY}, id % 2 AS city", HIVE_STYLE, "day = DATE '2024-02-29' AND city = 1", (1, 7)),
        (f"{DAY}, id % 2 AS city", {}, "day > DATE '2024-02-28' AND city = 1", (1, 5, 7)),
        ("id % 2 = 0 AS city", HIVE_STYLE, "NOT city", (1, 3, 5, 7)),
        ("CAST(id % 2 AS DECIMAL(9, 2)) AS city", HIVE_STYLE, "city = 1", (1, 3, 5, 7)),
        ("CONCAT('c', id % 2) AS city", {"hoodie.populate.meta.fields": "false"}, "city = 'c1'", (1, 3, 5, 7)),
    ],
)
def test_partitions(
    spark: SparkSession,
    trino: Trino,
    metastore: str,
    tmp_path: Path,
    columns: str,
    options: dict[str, str],
    condition: str,
    keys: tuple[int, ...],
) -> None:
    fields = ",".join(name for name in ("day", "City", "city") if f"AS {name}" in columns)
    table = save(spark, tmp_path, FEW.format(round=1) + columns, (0, 8), {PARTITION: fields, **options})
    name = f"partitions_{tmp_path.name}".lower()
    check(trino, table, sync(table, metastore, name))
    ids = [[key] for key in keys]
    assert trino.rows(f"SELECT id FROM {name} WHERE {condition} ORDER BY id") == ids


def test_services(spark: SparkSession, trino: Trino, metastore: str, tmp_path: Path) -> None:
    options = {PARTITION: "city", **ARCHIVED, "hoodie.parquet.small.file.limit": "0"}
    row = FEW + "IF(id % 2 = 0, 'oslo', 'moss') AS city"
    for number in range(1, 6):
        table = save(spark, tmp_path, row.format(round=number), (number, number + 4), options)
    assert list(tmp_path.glob(".hoodie/timeline/history/*.parquet"))
    names = sync(table, metastore, "services")
    check(trino, table, names)
    assert table.services.schedule_clustering({"hoodie.clustering.inline.max.commits": "1"})
    check(trino, table, names)
    table.services.run_clustering()
    check(trino, table, names)
    wider = row.replace("'n{round}'", "1.5D AS extra, 'n{round}'").format(round=9)
    save(spark, tmp_path, wider, (20, 21), {**options, f"{WRITE}operation": "insert_overwrite"})
    sync(table, metastore, "services")
    check(trino, table, names)
    assert trino.rows("SELECT extra FROM services WHERE city = 'oslo'") == [[1.5]]


def test_merge_on_read(spark: SparkSession, trino: Trino, metastore: str, tmp_path: Path) -> None:
    """All names show the base files. A log file of an archived commit makes a table of version 8 unreadable."""
    options = {PARTITION: "city", **MERGE_ON_READ, **ARCHIVED}
    row = FEW + "IF(id % 2 = 0, 'oslo', 'moss') AS city"
    for number in (1, 2):
        table = save(spark, tmp_path, row.format(round=number), (0, 4), options)
    names = sync(table, metastore, "merged")
    assert names == ["merged_ro", "merged_rt", "merged"]
    check(trino, table, names)
    assert trino.rows("SELECT DISTINCT name FROM merged") == [["n1"]]
    assert table.services.schedule_compaction({"hoodie.compact.inline.max.delta.commits": "1"})
    save(spark, tmp_path, row.format(round=3), (0, 1), options)
    check(trino, table, names)
    table.services.run_compaction()
    check(trino, table, names)
    assert trino.rows("SELECT DISTINCT name FROM merged") == [["n2"]]
