"""Bootstrap by threads of this process: tables over files that are there, read, refused, cut off and begun again."""

from __future__ import annotations

import contextlib
import os
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.config.property_keys import BOOTSTRAP_UNFINISHED
from pyhudi.errors import (
    ConfigError,
    ConflictError,
    CorruptTableError,
    RecordKeyError,
    SchemaMismatchError,
    TableExistsError,
    TransactionError,
    UnsupportedTableError,
)
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.services.bootstrap.bootstrap_runner import run_bootstrap
from pyhudi.services.bootstrap.metadata_bootstrap import ThreadSkeletonWriter
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.table.bootstrap_index import METADATA_BOOTSTRAP, BootstrapIndex
from pyhudi.table.config.properties_file import update_properties
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.write_result import WriteResult
from tests.cases import each_choice
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.properties import places

SELECTOR = "hoodie.bootstrap.mode.selector"
ROWS = 30
KEEP_TWO = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def make_source(folder: Path, *, hive: bool = False) -> list[dict[str, Any]]:
    """Two files in each of two partitions, of several row groups; returns the rows that a table over them has."""
    rows = []
    for day in ("2024-01-01", "2024-01-02"):
        for number in range(2):
            ids = range(number * ROWS, number * ROWS + ROWS)
            table = pa.table(
                {
                    "id": [f"{day}-{i:02}" for i in ids],
                    "n": pa.array(ids, pa.int64()),
                    "ts": pa.array([1] * ROWS, pa.int64()),
                    "items": [[{"a": i, "b": str(i)}] for i in ids],
                }
            )
            rows += [{**row, "day": day} for row in table.to_pylist()]
            if not hive:
                table = table.append_column("day", pa.array([day] * ROWS))
            path = folder / (f"day={day}" if hive else day) / f"part-{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, row_group_size=7)
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "rest.parquet").write_bytes(b"no table")
    return rows


def options_for(source: Path, **more: object) -> dict[str, object]:
    """Options of a bootstrap of `make_source`; the filters of its few keys are small."""
    return {
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.time.generator.max_expected_clock_skew_ms": "0",
        "hoodie.index.bloom.num_entries": "10",
        "hoodie.bloom.index.filter.dynamic.max.entries": "10",
        **more,
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    make_source(tmp_path / "source")
    return tmp_path / "source"


def rows_of(table: HudiTable, **scan: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(**scan).to_arrow().to_pylist()
    own = [{name: value for name, value in row.items() if not name.startswith("_hoodie")} for row in found]
    return sorted(own, key=lambda row: str(row.get("id")))


def test_names_of_folders_determine_the_style_of_partitions(tmp_path: Path):
    rows = make_source(tmp_path / "hive", hive=True)
    pyhudi.bootstrap_table(tmp_path / "table", options_for(tmp_path / "hive"))
    table = HudiTable.for_path(str(tmp_path / "table"))
    assert rows_of(table) == sorted(rows, key=lambda row: str(row["id"]))
    properties = (tmp_path / "table" / ".hoodie" / "hoodie.properties").read_text()
    assert "hoodie.datasource.write.hive_style_partitioning=true\n" in properties


def bootstrap_folders(
    tmp_path: Path, folders: list[str], fields: str, *, kind: pa.DataType | None = None, **more: str
) -> HudiTable:
    """Bootstrap one file in each folder, of the key by the number of its folder."""
    for number, folder in enumerate(folders):
        (tmp_path / "source" / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": [str(number)], "ts": [1]}), tmp_path / "source" / folder / "part.parquet")
    named = {key.replace("__", "."): value for key, value in more.items()}
    options = options_for(tmp_path / "source", **{"hoodie.datasource.write.partitionpath.field": fields}, **named)
    columns = None if kind is None else pa.schema([("id", pa.string()), ("ts", pa.int64()), (fields, kind)])
    pyhudi.bootstrap_table(tmp_path / "table", options, schema=columns)
    return HudiTable.for_path(str(tmp_path / "table"))


@pytest.mark.parametrize(
    ("folder", "kind", "message"),
    [
        ("m=01", pa.int32(), "'m=01' .* would be a second partition beside 'm=1', .*rename .* or declare the column"),
        ("m=1.5", pa.decimal128(10, 2), "beside 'm=1.50'"),
        ("m=abc", pa.int32(), "'m=abc' .* no value of the type int32 of the partition column 'm'; rename .*, declare"),
        ("m=2024-01-01 10%3A00%3A00", pa.timestamp("us", "UTC"), "no value of the type timestamp.*microseconds since"),
        ("m=", pa.int32(), "has no value of the type int32 .*__HIVE_DEFAULT_PARTITION__ for no value"),
        ("m=", pa.string(), "beside 'm=__HIVE_DEFAULT_PARTITION__', .*; rename the folder so$"),
    ],
)
def test_folders_of_another_type_are_refused(tmp_path: Path, folder: str, kind: pa.DataType, message: str):
    with pytest.raises(ConfigError, match=message):
        bootstrap_folders(tmp_path, [folder], "m", kind=kind)
    assert not (tmp_path / "table").exists()


def test_folders_of_slash_separated_dates(tmp_path: Path):
    more = {
        "hoodie__datasource__write__slash__separated__date__partitioning": "true",
        "hoodie__datasource__write__partitionpath__urlencode": "true",
    }
    table = bootstrap_folders(tmp_path, ["2024/01/01"], "day", **more)
    assert table.scan().to_arrow()["_hoodie_partition_path"].to_pylist() == ["2024/01/01"]


@pytest.mark.parametrize(
    ("folder", "kind", "value"),
    [
        ("1", pa.int32(), 1),
        ("true", pa.bool_(), True),
        ("1704164645000000", pa.timestamp("us", "UTC"), datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ],
)
def test_typed_folders_have_values(tmp_path: Path, folder: str, kind: pa.DataType, value: object):
    table = bootstrap_folders(tmp_path, [f"m={folder}", "m=__HIVE_DEFAULT_PARTITION__"], "m", kind=kind)
    assert [row["m"] for row in rows_of(table)] == [value, None]


@pytest.mark.parametrize("fields", ["a", "a,b"])
def test_rows_without_a_key_are_refused(tmp_path: Path, fields: str):
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"a": ["x", ""], "b": pa.array(["y", None])}), tmp_path / "source" / "part.parquet")
    options = {
        "hoodie.bootstrap.base.path": str(tmp_path / "source"),
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": fields,
    }
    with pytest.raises(RecordKeyError, match=r"1 of 2 rows of .*part\.parquet have no record key: .* is null or empty"):
        pyhudi.bootstrap_table(tmp_path / "table", options)


@pytest.mark.parametrize(
    ("of_table", "of_file", "key"),
    [
        (pa.array([1.0]), pa.array([2], pa.int32()), "2.0"),
        (pa.array([Decimal("1.5000")], pa.decimal128(12, 4)), pa.array([Decimal("2.50")]), "2.5000"),
        (pa.array(["a"]), pa.array([b"b"]), "b"),
        (pa.array(["a"]), pa.array(["b"], pa.large_string()), "b"),
        (pa.array(["a"]), pa.array(["b"]).dictionary_encode(), "b"),
    ],
)
def test_keys_have_the_types_of_the_table(tmp_path: Path, of_table: pa.Array, of_file: pa.Array, key: str):
    """A later write of the record makes the same key."""
    source = tmp_path / "source"
    source.mkdir()
    for name, ids in (("a", of_table), ("b", of_file)):
        pq.write_table(pa.table({"id": ids}), source / f"{name}.parquet")
    options = {"hoodie.bootstrap.base.path": str(source), "hoodie.table.name": "t"}
    pyhudi.bootstrap_table(tmp_path / "table", {**options, "hoodie.datasource.write.recordkey.field": "id"})
    scan = HudiTable.for_path(str(tmp_path / "table")).scan(columns=["_hoodie_record_key"])
    assert key in scan.to_arrow()["_hoodie_record_key"].to_pylist()


def test_encoded_names_of_folders_are_decoded(tmp_path: Path):
    """Spark writes values with special characters so."""
    folders = ["city=a%3Ab", "city=50%25", "city=Oslo", "city=__HIVE_DEFAULT_PARTITION__"]
    table = bootstrap_folders(tmp_path, folders, "city")
    assert [row["city"] for row in rows_of(table)] == ["a:b", "50%", "Oslo", None]
    assert table.scan(filter="city = 'a:b'").to_arrow()["_hoodie_partition_path"].to_pylist() == ["city=a%3Ab"]


def test_encoded_names_that_are_values(tmp_path: Path):
    as_they_are = {"hoodie__datasource__write__partitionpath__urlencode": "false"}
    table = bootstrap_folders(tmp_path, ["city=a%3Ab"], "city", **as_they_are)
    assert [row["city"] for row in rows_of(table)] == ["a%3Ab"]


def test_names_that_writes_encode_otherwise_are_refused(tmp_path: Path):
    folders = ["city=New%20York", "city=Oslo"]
    with pytest.raises(ConfigError, match=r"New%20York.*second partition beside 'city=New York'.*DecodedBootstrap"):
        bootstrap_folders(tmp_path, folders, "city")
    decoder = {"hoodie__bootstrap__partitionpath__translator__class": "DecodedBootstrapPartitionPathTranslator"}
    shutil.rmtree(tmp_path / "source")
    table = bootstrap_folders(tmp_path, folders, "city", **decoder)
    assert [(row["city"]) for row in rows_of(table)] == ["New York", "Oslo"]
    assert set(table.scan().to_arrow()["_hoodie_partition_path"].to_pylist()) == {"city=New York", "city=Oslo"}


@pytest.mark.parametrize(
    ("folder", "fields", "columns"),
    [("y=2024/m=01", "m,y", "y,m"), ("y=2024/m=01", "y", "y,m"), ("City=Oslo", "city", "City")],
)
def test_folders_of_other_columns_are_refused(tmp_path: Path, folder: str, fields: str, columns: str):
    with pytest.raises(ConfigError, match=rf"have the columns.*partitionpath\.field={columns},"):
        bootstrap_folders(tmp_path, [folder], fields)


@pytest.mark.parametrize(
    ("version", "table_type", "hive"), each_choice((9, 8, 6), ("COPY_ON_WRITE", "MERGE_ON_READ"), (True, False))
)
def test_a_table_over_files_has_their_rows(version: int, table_type: str, hive: bool, tmp_path: Path):
    rows = make_source(tmp_path / "source", hive=hive)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "source").rglob("*")}
    more = {
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
    }
    result = pyhudi.bootstrap_table(tmp_path / "table", options_for(tmp_path / "source", **more))
    assert (result.operation, result.instant, result.num_files, result.num_inserts) == (
        "BOOTSTRAP",
        "00000000000001",
        4,
        120,
    )
    table = HudiTable.for_path(str(tmp_path / "table"))
    assert rows_of(table) == sorted(rows, key=lambda row: str(row["id"]))
    partition = "day=2024-01-01" if hive else "2024-01-01"
    meta = table.scan(filter="n = 33 and day = '2024-01-01'").to_arrow().to_pylist()
    assert [(row["_hoodie_record_key"], row["_hoodie_partition_path"], row["_hoodie_commit_time"]) for row in meta] == [
        ("2024-01-01-33", partition, "00000000000001")
    ]
    assert rows_of(table, columns=["day", "n"], filter=[("n", "<", 1)]) == [
        {"day": "2024-01-01", "n": 0},
        {"day": "2024-01-02", "n": 0},
    ]
    assert table.scan(filter="n > 1000").plan().tasks.num_rows == (0 if version > 6 else 4)  # bounds of the source
    assert table.scan(columns=[]).to_arrow().num_rows == 120
    assert table.scan(begin="000").to_arrow().num_rows == 120
    assert table.scan(as_of=result.instant).to_arrow().num_rows == 120
    assert table.lookup(["2024-01-02-07"], columns=["n"])["n"].to_pylist() == [7]
    assert table.validate_metadata().num_rows == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "source").rglob("*")} == before
    mapping = table.inspect.bootstrap_mapping(partition)
    assert {row["source_partition"] for row in mapping.to_pylist()} == {partition}
    assert {row["source_size"] for row in mapping.to_pylist()} <= {path.stat().st_size for path in before}
    assert table.inspect.bootstrap_mapping(file_ids=mapping["file_id"].to_pylist()) == mapping
    assert table.inspect.bootstrap_partitions()["partition"].to_pylist() == [
        partition,
        partition.replace("01-01", "01-02"),
    ]


def test_the_index_is_named_as_each_version_does(source: Path, tmp_path: Path):
    options = options_for(source, **{"hoodie.write.table.version": 6})
    pyhudi.bootstrap_table(tmp_path / "table", options)
    table = HudiTable.for_path(str(tmp_path / "table"))
    index, kind = "hoodie.bootstrap.index.class", "hoodie.bootstrap.index.type"
    for version, named in ((6, None), (9, "HFILE"), (6, None)):
        if version != table.config.version:
            getattr(table.services, "upgrade" if version > 6 else "downgrade")(version)
        properties = table.config.properties
        assert (properties[index].endswith(".HFileBootstrapIndex"), properties.get(kind)) == (True, named)
        assert table.scan().to_arrow().num_rows == 120


def test_metadata_only_reads_footers_and_keys(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from pyhudi.write.rows import bootstrap_source

    read: list[list[str]] = []
    inner = bootstrap_source.parquet.read_batches
    monkeypatch.setattr(
        bootstrap_source.parquet,
        "read_batches",
        lambda file, names, **how: read.append(list(names)) or inner(file, names, **how),
    )
    pyhudi.bootstrap_table(tmp_path / "table", options_for(source))
    assert read == [["id"]] * 4


def test_the_index_tells_the_sources(source: Path, tmp_path: Path):
    pyhudi.bootstrap_table(tmp_path / "table", options_for(source))
    index = BootstrapIndex(LocalStorage(tmp_path / "table"))
    assert index.partitions() == ["2024-01-01", "2024-01-02"]
    assert index.source_base_path() == str(source)
    found = list(index.sources())
    assert [one.uri for one in sorted(found, key=lambda one: one.uri)] == [
        f"file://{source}/{day}/part-{n}.parquet" for day in index.partitions() for n in (0, 1)
    ]
    assert index.source_of(found[0].partition, found[0].file_id) == found[0]
    with pytest.raises(CorruptTableError, match="lacks its source"):
        index.source_of("2024-01-01", "nobody")


def test_options_of_the_lock_are_checked_before_the_table_is_created(source: Path, tmp_path: Path):
    lock = {"hoodie.write.lock.provider": "ZookeeperBasedLockProvider", "hoodie.write.lock.zookeeper.url": "zookeeper"}
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.base_path"):
        pyhudi.bootstrap_table(tmp_path / "table", options_for(source, **lock))
    assert not (tmp_path / "table").exists()


def test_a_source_that_changed_is_refused(source: Path, tmp_path: Path):
    pyhudi.bootstrap_table(tmp_path / "table", options_for(source))
    table = HudiTable.for_path(str(tmp_path / "table"))
    path = source / "2024-01-01" / "part-0.parquet"
    content, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    rows = pq.read_table(path)
    pq.write_table(rows.slice(1), path)
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet.*has changed since the bootstrap"):
        table.scan().to_arrow()
    path.unlink()
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet.*no longer exists; restore it"):
        table.scan().to_arrow()
    assert table.scan(columns=["_hoodie_record_key"]).to_arrow().num_rows == 120  # which the table has itself
    path.write_bytes(content)
    with pytest.raises(CorruptTableError, match=r"its modification time is .* and was .*modification\.times=false"):
        table.scan().to_arrow()
    os.utime(path, ns=times)
    assert table.scan().to_arrow().num_rows == 120
    os.utime(path, ns=(times[0], times[1] - times[1] % 10**9))  # where a storage tells whole seconds
    assert table.scan().to_arrow().num_rows == 120
    os.utime(path)
    lenient = {"pyhudi.bootstrap.check.modification.times": "false"}
    update_properties(LocalStorage(tmp_path / "table"), put=lenient)
    assert table.scan().to_arrow().num_rows == 120
    (tmp_path / "table/.hoodie/.aux/.bootstrap/.fileids").rename(tmp_path / "lost")
    with pytest.raises(CorruptTableError, match=r"bootstrap index .* is missing"):
        table.scan().to_arrow()


class TestRefused:
    def check(self, source: Path, table: Path, kind: type[Exception], match: str, **more: object) -> None:
        with pytest.raises(kind, match=match):
            pyhudi.bootstrap_table(table, options_for(source, **more))
        assert not HudiTable.exists(str(table))

    def test_options(self, source: Path, tmp_path: Path):
        table = tmp_path / "table"
        self.check(source, table, UnsupportedTableError, "Java code", **{SELECTOR: "com.me.Mine"})
        self.check(source, table, UnsupportedTableError, "needs Spark", **{SELECTOR: "FullRecordBootstrapModeSelector"})
        self.check(source, table, UnsupportedTableError, "BUCKET", **{"hoodie.index.type": "BUCKET"})
        self.check(source, table, ConfigError, "meta columns", **{"hoodie.populate.meta.fields": "false"})
        self.check(source, table, ConfigError, "index.enable", **{"hoodie.bootstrap.index.enable": "false"})
        self.check(source, table, SchemaMismatchError, "'uuid'", **{"hoodie.datasource.write.recordkey.field": "uuid"})
        self.check(
            source, table, ConfigError, "not a partition path", **{"hoodie.datasource.write.partitionpath.field": ""}
        )
        regex = {SELECTOR: "BootstrapRegexModeSelector", "hoodie.bootstrap.mode.selector.regex": "("}
        self.check(source, table, ConfigError, "regular expression", **regex)
        self.check(source, source / "table", ConfigError, "inside the other's folder")
        self.check(tmp_path / "nothing", table, ConfigError, "nothing to bootstrap")
        with pytest.raises(ConfigError, match=r"hoodie\.bootstrap\.base\.path"):
            pyhudi.bootstrap_table(table, {"hoodie.table.name": "t"})

    def test_keys_that_spark_may_format_differently(self, tmp_path: Path):
        (tmp_path / "source").mkdir()
        rows = {"id": pa.array([0.5, 1897508860.0], pa.float32()), "ts": [1, 1]}
        pq.write_table(pa.table(rows), tmp_path / "source" / "1.parquet")
        options = {"hoodie.datasource.write.partitionpath.field": ""}
        self.check(tmp_path / "source", tmp_path / "table", RecordKeyError, "1897508864.0 of the field 'id'", **options)

    def test_sources(self, source: Path, tmp_path: Path):
        table, path = tmp_path / "table", source / "2024-01-02" / "part-1.parquet"
        rows = pq.read_table(path)
        pq.write_table(rows.append_column("more", rows["n"]), path)
        self.check(source, table, SchemaMismatchError, "'more'")
        pq.write_table(rows.set_column(1, "n", rows["id"]), path)
        self.check(source, table, SchemaMismatchError, "other types")
        pq.write_table(rows.set_column(0, "id", pa.array([None, *rows["id"].to_pylist()[1:]])), path)
        self.check(source, table, RecordKeyError, "1 of 30 rows")
        pq.write_table(rows, source / "top.parquet")
        self.check(source, table, ConfigError, "different depth")

    def test_hive_folders_with_other_options(self, tmp_path: Path):
        make_source(tmp_path / "hive", hive=True)
        key = "hoodie.datasource.write.hive_style_partitioning"
        self.check(tmp_path / "hive", tmp_path / "table", ConfigError, f"{key}=true", **{key: "false"})

    def test_a_table_that_was_written_to(self, source: Path, tmp_path: Path):
        pyhudi.bootstrap_table(tmp_path / "table", options_for(source))
        with pytest.raises(TableExistsError, match="has been written to"):
            pyhudi.bootstrap_table(tmp_path / "table", options_for(source))
        shutil.copytree(source, tmp_path / "other")
        with pytest.raises(ConfigError, match="was bootstrapped from"):
            pyhudi.bootstrap_table(tmp_path / "table", options_for(tmp_path / "other"))


def test_rows_that_were_not_copied_are_copied_by_the_next(source: Path, tmp_path: Path):
    storage = LocalStorage(tmp_path / "table")
    modes = {SELECTOR: "BootstrapRegexModeSelector", "hoodie.bootstrap.mode.selector.regex": ".*-01"}
    plan = BootstrapPlan.from_options(storage, Options.parse(options_for(source, **modes)))
    asked: list[list[str]] = []

    def fail(left: BootstrapPlan, _: TableMetaClient) -> WriteResult:
        raise RuntimeError(f"{left.full.num_rows} files")

    def copy(left: BootstrapPlan, client: TableMetaClient) -> WriteResult:
        asked.append(sorted(set(left.full["partition"].to_pylist())))
        return WriteResult(client.storage.uri(), "BULK_INSERT", "00000000000002")

    with pytest.raises(RuntimeError, match="2 files"):
        run_bootstrap(plan, ThreadSkeletonWriter(), fail, LOCAL)
    table = HudiTable.for_path(str(tmp_path / "table"))
    assert {row["day"] for row in rows_of(table)} == {"2024-01-01"}
    check_refused(tmp_path / "table")
    result = run_bootstrap(plan, ThreadSkeletonWriter(), copy, LOCAL)
    assert (asked, result.instant, result.num_files, result.created_table) == (
        [["2024-01-02"]],
        "00000000000002",
        0,
        False,
    )
    check_writable(tmp_path / "table")


def is_unfinished(path: Path) -> bool:
    return BOOTSTRAP_UNFINISHED in TableMetaClient.open(str(path)).config.properties


def check_refused(path: Path) -> None:
    """Rows of the source are missing, and nobody writes before they are there."""
    with pytest.raises(TransactionError, match=r"interrupted before.*run the same bootstrap again.*change_properties"):
        Transaction.begin(TableMetaClient.open(str(path)), Action.COMMIT, "UPSERT", {})


def check_writable(path: Path) -> None:
    client = TableMetaClient.open(str(path))
    assert BOOTSTRAP_UNFINISHED not in client.config.properties
    with Transaction.begin(client, Action.COMMIT, "UPSERT", {}) as begun:
        assert begun.instant > "2"


def test_a_bootstrap_that_died_before_its_first_instant(source: Path, tmp_path: Path):
    path, settings = tmp_path / "table", Options.parse(options_for(source))
    storage = FaultyStorage(LocalStorage(path), [Fault("create", 1, "after", Killed, path=r"hoodie\.properties$")])
    with pytest.raises(Killed):
        run_bootstrap(BootstrapPlan.from_options(storage, settings), ThreadSkeletonWriter(), None, LOCAL)
    assert not HudiTable.for_path(str(path)).history().num_rows
    check_refused(path)
    shutil.copytree(path, tmp_path / "given up")
    pyhudi.bootstrap_table(path, settings)
    check_writable(path)
    assert HudiTable.for_path(str(path)).scan().to_arrow().num_rows == 120
    HudiTable.for_path(str(tmp_path / "given up")).services.change_properties(remove=[BOOTSTRAP_UNFINISHED])
    check_writable(tmp_path / "given up")


def test_a_bootstrap_that_died_after_its_commit(source: Path, tmp_path: Path):
    """Only the same bootstrap knows that no rows are missing. After writes of others nobody can run it."""
    path, settings = tmp_path / "table", Options.parse(options_for(source))
    storage = FaultyStorage(LocalStorage(path), [Fault("replace", 1, "before", Killed, path=r"hoodie\.properties$")])
    no_index = settings.merged({"hoodie.metadata.enable": "false"})
    with pytest.raises(Killed):
        run_bootstrap(BootstrapPlan.from_options(storage, no_index), ThreadSkeletonWriter(), None, LOCAL)
    check_refused(path)
    shutil.copytree(path, tmp_path / "written")
    result = pyhudi.bootstrap_table(path, no_index)
    assert (result.instant, result.num_files) == (None, 0)
    check_writable(path)
    assert HudiTable.for_path(str(path)).scan().to_arrow().num_rows == 120
    with pytest.raises(TableExistsError, match="has been written to"):
        pyhudi.bootstrap_table(path, no_index)
    _commit_nothing(tmp_path / "written", "20990101000000000")
    with Transaction.begin(TableMetaClient.open(str(tmp_path / "written")), Action.COMMIT, "UPSERT", {}) as begun:
        assert begun.instant > "2"


def test_a_bootstrap_that_was_taken_for_dead_leaves_the_next_one_alone(source: Path, tmp_path: Path):
    """Both have the same instant. The first wakes up when the other has written its files."""
    path, settings = tmp_path / "table", Options.parse(options_for(source))
    plan = BootstrapPlan.from_options(LocalStorage(path), settings)
    client = TableMetaClient.create(plan.target.storage, plan.target.config, settings)
    slow = Transaction.begin(client, Action.COMMIT, "BOOTSTRAP", settings, instant=METADATA_BOOTSTRAP)
    slow.to_inflight()
    writer = ThreadSkeletonWriter(threads=1)

    def disturbed(handle: Any, sources: Any) -> pa.Table:
        stats = writer(handle, sources)
        with pytest.raises(ConflictError, match="considered this writer dead"):
            slow.commit(CommitMetadata("BOOTSTRAP"))
        slow.abort()
        return stats

    run_bootstrap(plan, disturbed, None, LOCAL)
    table = HudiTable.for_path(str(path))
    assert table.scan().to_arrow().num_rows == 120
    assert table.validate_metadata().num_rows == 0
    assert len(list(path.glob("2024*/*.parquet"))) == 4


def test_a_bootstrap_that_fails_in_an_empty_table_leaves_it(source: Path, tmp_path: Path):
    path, settings = tmp_path / "table", Options.parse(options_for(source))
    plan = BootstrapPlan.from_options(LocalStorage(path), settings)
    TableMetaClient.create(plan.target.storage, plan.target.config, settings)

    def fail(*_: Any) -> pa.Table:
        raise RuntimeError("no rows")

    with pytest.raises(RuntimeError, match="no rows"):
        run_bootstrap(plan, fail, None, LOCAL)
    check_writable(path)


@pytest.mark.parametrize("same_names", [False, True], ids=["", "names as in the first attempt"])
def test_archival_keeps_the_skeletons_of_a_bootstrap_that_was_begun_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_names: bool
):
    """The rollback of the first attempt has the same instant, and may stay when the bootstrap has been archived.
    Attempts of Apache Hudi may repeat file names."""
    if same_names:
        monkeypatch.setattr("pyhudi.services.bootstrap.metadata_bootstrap.secrets.randbits", lambda _: 7)
    path, no_index = tmp_path / "table", {"hoodie.metadata.enable": "false"}
    settings = Options.parse(options_for(source, **no_index))

    def run(*faults: Fault) -> set[Path]:
        plan = BootstrapPlan.from_options(FaultyStorage(LocalStorage(path), faults), settings)
        with contextlib.suppress(Killed):
            run_bootstrap(plan, ThreadSkeletonWriter(threads=1), None, LOCAL)
        return set(path.glob("2024*/*.parquet"))

    first = run(Fault("write", path=r"\.fileids/", when="after", error=Killed))
    again = run()
    assert (len(first), len(again), len(first & again)) == (4, 4, 4 if same_names else 0)
    table, archived = HudiTable.for_path(str(path), {**no_index, **KEEP_TWO}), list[str]()
    for second in range(5):
        _commit_nothing(path, f"209901010000{second:02}000")
        archived = [*archived, *table.services.archive().instants]
        assert table.scan().to_arrow().num_rows == 120
    assert len(archived) == 5
    assert (archived[0], "rollback" in str(table.history(archived=True))) == ("00000000000001", True)


def _commit_nothing(path: Path, instant: str) -> None:
    client = TableMetaClient.open(str(path))
    active = client.active_timeline()
    entry = active.to_inflight(active.create_requested(Action.COMMIT, instant))
    recorded = active.commit_metadata(active.timeline.completed().writes().instants[-1])
    metadata = CommitMetadata("UPSERT", extra={"schema": recorded.extra["schema"]})
    active.complete(entry, metadata.encode(client.config.version, Action.COMMIT), instant)


def test_a_bootstrap_that_dies_anywhere_is_finished_by_the_next(source: Path, tmp_path: Path):
    settings = Options.parse(options_for(source))

    def run(path: Path, *faults: Fault) -> FaultyStorage:
        storage = FaultyStorage(LocalStorage(path), faults)
        with contextlib.suppress(Killed):
            run_bootstrap(BootstrapPlan.from_options(storage, settings), ThreadSkeletonWriter(threads=1), None, LOCAL)
        return storage

    whole = run(tmp_path / "whole")
    writes = sum(name in WRITES for name, _ in whole.operations)
    assert writes > 30
    done = 0
    for number in (nth + 1 for nth in places(writes, step=2)):
        path = tmp_path / str(number)
        assert run(path, Fault("writes", number, "after", Killed)).dead
        done += any((path / ".hoodie/timeline").glob("*.commit"))
        if not (path / ".hoodie/hoodie.properties").exists() or is_unfinished(path):
            run(path)
        assert not is_unfinished(path)
        table = HudiTable.for_path(str(path))
        assert table.scan().to_arrow().num_rows == 120, number
        assert table.validate_metadata().num_rows == 0, number
        assert len(list(path.glob("2024*/*.parquet"))) == 4, number
    assert 0 < done < writes / 6


@pytest.mark.parametrize("version", [6, 9])
def test_no_write_takes_the_place_of_the_rest_of_a_bootstrap(source: Path, tmp_path: Path, version: int):
    path = tmp_path / "table"
    settings = Options.parse(options_for(source, **{"hoodie.write.table.version": version}))
    storage = FaultyStorage(LocalStorage(path), [Fault("write", path=r"\.fileids/", when="after", error=Killed)])
    with contextlib.suppress(Killed):
        run_bootstrap(BootstrapPlan.from_options(storage, settings), ThreadSkeletonWriter(threads=1), None, LOCAL)
    table = HudiTable.for_path(str(path))
    lazily = {"hoodie.clean.failed.writes.policy": "LAZY"}
    for write in ({}, lazily):
        with pytest.raises(TransactionError, match=r"instant 00000000000001.*not completed.*run the same bootstrap"):
            Transaction.begin(TableMetaClient.open(str(path)), Action.COMMIT, "UPSERT", write)
    table.services.clean(lazily)
    assert [row["state"] for row in table.history().to_pylist()] == ["INFLIGHT"]
    shutil.copytree(path, tmp_path / "again")
    pyhudi.bootstrap_table(tmp_path / "again", settings)
    assert HudiTable.for_path(str(tmp_path / "again")).scan().to_arrow().num_rows == 120
    table.services.rollback("00000000000001")
    check_writable(path)


@pytest.mark.parametrize("archived", [False, True], ids=["", "archived"])
@pytest.mark.parametrize("version", [6, 9])
def test_partitions_expire_by_the_time_of_the_bootstrap(source: Path, tmp_path: Path, version: int, archived: bool):
    options = options_for(source, **{"hoodie.write.table.version": version, "hoodie.metadata.enable": "false"})
    pyhudi.bootstrap_table(tmp_path / "table", options)
    table = HudiTable.for_path(str(tmp_path / "table"), KEEP_TWO)
    if archived:
        for second in range(3):
            _commit_nothing(tmp_path / "table", f"209901010000{second:02}000")
        assert table.services.archive().instants[0] == "00000000000001"
    marks = [path / ".hoodie_partition_metadata" for path in (tmp_path / "table").glob("2024*")]

    def expired(strategy: str) -> tuple[str, ...]:
        own = {"strategy.days.retain": "3650", "management.strategy.type": strategy}
        ttl = {f"hoodie.partition.ttl.{name}": value for name, value in own.items()}
        return table.services.delete_expired_partitions(ttl, dry_run=True).partitions

    assert (len(marks), expired("KEEP_BY_TIME"), expired("KEEP_BY_CREATION_TIME")) == (2, (), ())
    if version == 6:
        os.utime(marks[0], (0, 0))
        assert expired("KEEP_BY_TIME") == expired("KEEP_BY_CREATION_TIME") == (marks[0].parent.name,)
