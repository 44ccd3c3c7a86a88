"""Log files of ours, appended to file slices of Apache Hudi's tables, are read by Apache Hudi."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.format.file_names import next_log_version, parse_names
from pyhudi.format.log import LogBlockHeader, LogOptions, LogSchema, LogSlice, LogWriter, decode_records, scan_blocks
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.meta_columns import add_meta_columns, remove_meta_columns
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import next_instant
from tests.cases import every_second, seldom
from tests.interop.harness.oracle import RELEASES, Oracle, OracleError, read_with_hudi_rs
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import assert_same_rows

every_release = pytest.mark.parametrize("oracle", RELEASES, indirect=True)
oldest_and_newest = pytest.mark.parametrize("oracle", ["0.15.0", seldom("1.0.2"), "1.2.0"], indirect=True)
since_1 = pytest.mark.parametrize("oracle", RELEASES[1:], indirect=True)

VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.metadata.enable": "false",
    **PARALLELISM,
}
EVENT_TIME = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
LISTED = {"hoodie.metadata.enable": "false"}


class Table:
    """A table with one base file that Apache Hudi wrote, and log files of ours on top of it."""

    def __init__(self, oracle: Oracle, path: Path) -> None:
        self.oracle = oracle
        self.path = path
        self.client = TableMetaClient.open(path)
        assert self.client.config.version == VERSIONS[oracle.release]
        timeline = self.client.active_timeline()
        (self.base,) = timeline.timeline.completed().instants
        metadata = timeline.commit_metadata(self.base)
        (self.stat,) = metadata.stats.to_pylist()
        assert metadata.schema_json is not None
        self.extra = dict(metadata.extra)
        self.columns = remove_meta_columns(from_avro(metadata.schema_json))
        self.rows_schema = add_meta_columns(self.columns)
        self.now = self.base.requested
        base_file = pq.read_table(path / self.stat["path"], columns=["_hoodie_record_key"])
        self.keys = base_file["_hoodie_record_key"].to_pylist()

    @classmethod
    def from_rows(cls, oracle: Oracle, path: Path, rows: pa.Table, **options: str) -> Table:
        """A table that Apache Hudi writes now."""
        # 0.15.0 merges by event time only with this payload; the others find out by themselves
        event_time = EVENT_TIME if oracle.release == "0.15.0" else {}
        oracle.write(path, rows, {**OPTIONS, **event_time, **options})
        return cls(oracle, path)

    def rows(self, rows: pa.Table) -> pa.Table:
        """The rows with meta columns, of the next instant."""
        instant = next_instant(self.now)
        count = rows.num_rows
        meta = {
            "_hoodie_commit_time": [instant] * count,
            "_hoodie_commit_seqno": [f"{instant}_0_{i}" for i in range(count)],
            "_hoodie_record_key": rows["id"],
            "_hoodie_partition_path": [""] * count,
            "_hoodie_file_name": [self.stat["fileId"]] * count,
        }
        names = [name for name in self.rows_schema.names if name in meta or name in rows.column_names]
        fields = [self.rows_schema.field(name) for name in names]
        columns = {name: rows[name] for name in rows.column_names} | meta
        return pa.table([columns[field.name] for field in fields], pa.schema(fields))

    def append(
        self,
        write: Callable[[LogWriter], None],
        *,
        schema: pa.Schema | None = None,
        ordering: pa.Schema | None = None,
        change: Callable[[bytes], bytes] | None = None,
        partial: bool = False,
        options: LogOptions | None = None,
    ) -> None:
        """Commit what ``write`` writes; ``change`` spoils the bytes of the files."""
        version = self.client.config.version
        self.now = instant = next_instant(self.now)
        avro = to_avro(schema or self.rows_schema, "t")
        ordering = ordering if ordering is not None else pa.schema([self.columns.field("ts")])
        storage = self.client.storage
        file_id = self.stat["fileId"]
        where = LogSlice(file_id, instant, "0-1-2")
        if version == 6:
            names = pa.array([file.name for file in self.path.iterdir()])
            base = self.base.requested
            where = LogSlice(file_id, base, "0-1-2", next_log_version(names, file_id, base))
        header = LogBlockHeader(instant, LogSchema(avro, ordering, version), is_partial=partial)
        if version >= 8:
            header = replace(header, base_instant=self.base.requested)
        with LogWriter(storage.open_output, where, header, options=options) as writer:
            write(writer)
            files = writer.close()
        if change is not None:
            for file in files:
                target = self.path / file.name
                target.write_bytes(change(target.read_bytes()))
        stats = [
            {
                "fileId": file_id,
                "path": file.name,
                "partitionPath": "",
                "prevCommit": self.base.requested,
                "baseFile": self.stat["path"],
                "logFiles": [file.name],
                "logVersion": file.version,
                "logOffset": 0,
                "numWrites": file.num_records,
                "numUpdateWrites": file.num_records,
                "numDeletes": file.num_deletes,
                "totalWriteBytes": file.size,
                "fileSizeInBytes": file.size,
            }
            for file in files
        ]
        timeline = self.client.active_timeline()
        requested = timeline.create_requested("deltacommit", instant)
        timeline.to_inflight(requested)
        content = CommitMetadata("UPSERT", write_stats(stats), self.extra).encode(version, "deltacommit")
        self.now = next_instant(instant)
        timeline.complete(requested, content, self.now if version >= 8 else None)

    def upsert(self, rows: pa.Table, positions: list[int | None] | None = None, **more: Any) -> None:
        """Append records."""
        self.append(lambda writer: writer.write(self.rows(rows), positions and pa.array(positions)), **more)

    def delete(self, keys: list[str], positions: list[int] | None = None, **more: Any) -> None:
        """Append deletes; ``columns`` among ``more`` are those of the ordering fields."""
        columns = more.pop("columns", {})
        table = pa.table({"_hoodie_record_key": keys, "_hoodie_partition_path": [""] * len(keys), **columns})
        self.append(lambda writer: writer.delete(table, positions and pa.array(positions)), **more)

    def snapshot(self) -> pa.Table:
        """What Apache Hudi reads."""
        return self.oracle.read(self.path, LISTED)


DAY, MOMENT = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC)
WIDE = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("raw", pa.binary()),
        ("money", pa.decimal128(12, 2)),
        ("large", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.int64())),
        ("struct", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
        ("map", pa.map_(pa.string(), pa.float64())),
    ]
)


def wide(key: str, ts: int, n: int) -> dict[str, Any]:
    return {
        "id": key,
        "ts": ts,
        "i": -n,
        "f": n / 2,
        "d": -n / 3,
        "b": n % 2 == 0,
        "s": "ü" * n,
        "raw": bytes(range(n % 256)),
        "money": Decimal(n) / 100 - 1,
        "large": Decimal("1234567890123456789012345678.0123456789") * (-1) ** n,
        "day": DAY - dt.timedelta(1000 * n),
        "at": MOMENT - dt.timedelta(days=2_000 * n),
        "list": list(range(n)),
        "struct": {"x": n, "y": ["a"] * (n % 3)},
        "map": [("k", n / 7)] if n % 2 else [],
    }


def empty(key: str, ts: int) -> dict[str, Any]:
    return dict.fromkeys(WIDE.names) | {"id": key, "ts": ts}


@pytest.mark.parametrize(
    ("oracle", "data_format"),
    [
        ("0.15.0", "avro"),
        ("0.15.0", "parquet"),
        seldom(("0.15.0", "hfile")),
        ("1.0.2", "hfile"),
        seldom(("1.0.2", "avro")),
        seldom(("1.0.2", "parquet")),
        ("1.2.0", "avro"),
        ("1.2.0", "parquet"),
        seldom(("1.2.0", "hfile")),
    ],
    indirect=["oracle"],
)
def test_records_of_all_types(oracle: Oracle, tmp_path: Path, data_format: str) -> None:
    base = [wide(key, 10, 1) for key in "abcdef"]
    table = Table.from_rows(oracle, tmp_path / "t", pa.Table.from_pylist(base, WIDE))
    model = {row["id"]: row for row in base}
    news = [wide("b", 11, 4), wide("d", 9, 5), wide("new", 1, 6), empty("e", 10), wide("x" * 300, 3, 300)]
    table.upsert(pa.Table.from_pylist(news, WIDE), options=LogOptions(data_format=data_format))
    # a lower ordering value loses
    model |= {row["id"]: row for row in news if row["id"] != "d"}
    if data_format == "hfile" and oracle.release != "0.15.0":
        # with Spark rows they read no HFile of theirs either
        with pytest.raises(OracleError, match=r"GenericData\$Record cannot be cast to .*InternalRow"):
            table.snapshot()
        return
    assert_same_rows(table.snapshot(), pa.Table.from_pylist(list(model.values()), WIDE))


NARROW = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])


def narrow(*rows: tuple[str, int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(NARROW.names, row, strict=True)) for row in rows], NARROW)


BASE = narrow(*((key, 10, f"base {key}") for key in "abcdefgh"))


@pytest.fixture(scope="module")
def written() -> dict[str, Path]:
    """Tables of `BASE` by the release that has written them."""
    return {}


@pytest.fixture
def table(oracle: Oracle, written: dict[str, Path], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A copy of the table of `BASE`."""
    first = written.get(oracle.release)
    if first is None:
        first = tmp_path_factory.mktemp("written") / "t"
        Table.from_rows(oracle, first, BASE)
        written[oracle.release] = first
    return Table(oracle, Path(shutil.copytree(first, tmp_path / "t")))


def expect(table: Table, **values: str | None) -> None:
    """The table is its base with some rows changed, or gone (None)."""
    model = {key: f"base {key}" for key in "abcdefgh"} | values
    snapshot = table.snapshot()
    found = dict(zip(*(snapshot[name].to_pylist() for name in ("id", "v")), strict=True))
    assert found == {key: value for key, value in model.items() if value is not None}


@every_release
def test_deletes_and_positions(table: Table) -> None:
    place = {key: i for i, key in enumerate(table.keys)}
    table.upsert(narrow(("c", 20, "C"), ("a", 20, "A"), ("d", 5, "late")), [place["c"], place["a"], place["d"]])
    table.delete(["b", "a"], [place["b"], place["a"]])
    expect(table, a=None, b=None, c="C")
    # with ordering values: too late, in time, and the default; some without positions
    table.delete(["c", "e", "f"], columns={"ts": pa.array([15, 10, None], pa.int64())})
    expect(table, a=None, b=None, c="C", e=None, f=None)
    table.upsert(narrow(("e", 30, "E"), ("z", 1, "Z")), [place["e"], None])
    expect(table, a=None, b=None, c="C", e="E", f=None, z="Z")


@oldest_and_newest
def test_several_files_and_blocks_of_a_write(table: Table, tmp_path: Path) -> None:

    def write(writer: LogWriter) -> None:
        for n, key in enumerate("abcde"):
            writer.write(table.rows(narrow((key, 20 + n, key * 200))))
            writer.flush()

    table.append(write, options=LogOptions(max_file_size=3000))
    assert len([p for p in tmp_path.glob("t/.*.log.*") if not p.name.endswith(".crc")]) > 1
    expect(table, **{key: key * 200 for key in "abcde"})


@oldest_and_newest
def test_damaged_files(table: Table, tmp_path: Path) -> None:
    """A cut block in the middle, bytes without a magic, a cut block at the end: the same rows as ours."""

    def spoil(data: bytes) -> bytes:
        first, second, third = (data[b.offset : b.end] for b in scan_blocks(data))
        return first + second[:-30] + b"#HUD" + third + second[:-1]

    def write(writer: LogWriter) -> None:
        for key in "abc":
            writer.write(table.rows(narrow((key, 20, key * 2))))
            writer.flush()

    table.append(write, change=spoil)
    log = next(p for p in tmp_path.glob("t/.*.log.*") if not p.name.endswith(".crc"))
    ours = [decode_records(block)["id"].to_pylist() for block in scan_blocks(log.read_bytes())]
    assert ours == [["a"], ["c"]]
    expect(table, a="aa", c="cc")
    # fewer bytes than a magic at the end are no damage
    table.upsert(narrow(("d", 20, "dd")), change=lambda data: data + b"#HUDI")
    expect(table, a="aa", c="cc", d="dd")


@pytest.mark.parametrize("oracle", ["0.15.0"], indirect=True)
def test_rollback_commands(table: Table) -> None:
    table.upsert(narrow(("a", 20, "A")))
    undone = table.client.active_timeline().timeline.last
    assert undone is not None
    table.upsert(narrow(("b", 20, "B")))
    table.append(lambda writer: writer.roll_back(undone.requested))
    expect(table, b="B")


@since_1
def test_partial_updates(table: Table) -> None:
    part = BASE.schema.remove(NARROW.get_field_index("v"))
    changed = pa.table({"id": ["a", "b"], "ts": pa.array([30, 30], pa.int64())}, part)
    rows = table.rows(changed).drop_columns("id")
    schema = pa.schema([field for field in table.rows_schema if field.name in rows.column_names])
    table.append(lambda writer: writer.write(rows), schema=schema, partial=True)
    found = {row["id"]: (row["ts"], row["v"]) for row in table.snapshot().to_pylist()}
    assert (found["a"], found["b"], found["c"]) == ((30, "base a"), (30, "base b"), (10, "base c"))


@oldest_and_newest
def test_hudi_rs_reads_them_too(table: Table) -> None:
    table.upsert(narrow(("a", 20, "A"), ("z", 1, "Z")))
    table.delete(["b"])
    assert_same_rows(read_with_hudi_rs(table.path), table.snapshot(), ["id", "ts", "v"])


@since_1
def test_change_data(oracle: Oracle, tmp_path: Path) -> None:
    """Files of change data, read by ours and written again by ours, give the same changes."""
    path = tmp_path / "t"
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
    }
    oracle.write(path, BASE, options)
    oracle.write(path, narrow(("a", 20, "A"), ("n", 1, "N")), options | {"hoodie.datasource.write.operation": "upsert"})
    query = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "000",
        **LISTED,
    }
    before = oracle.read(path, query)
    client = TableMetaClient.open(path)
    (name,) = (file.name for file in path.glob(".*.cdc"))
    (named,) = parse_names(pa.array([name])).to_pylist()
    with client.storage.open_input(name) as source:
        (block,) = scan_blocks(source)
        changes = decode_records(block)
    assert block.schema is not None
    client.storage.delete(name)
    where = LogSlice(named["file_id"], named["instant"], named["token"], named["log_version"], is_cdc=True)
    schema = LogSchema(block.schema, pa.schema([]), client.config.version)
    with LogWriter(client.storage.open_output, where, LogBlockHeader(named["instant"], schema)) as writer:
        writer.write(changes)
    assert changes.num_rows == 2
    assert_same_rows(oracle.read(path, query), before)


LOW, MIDDLE, HIGH = MOMENT, MOMENT + dt.timedelta(microseconds=1), MOMENT + dt.timedelta(days=1)
ORDERINGS: list[tuple[pa.DataType, Any, Any, Any]] = [
    (pa.int32(), 5, 10, 20),
    (pa.float64(), 0.5, 1.0, 2.5),
    (pa.string(), "a", "b", "c"),
    (pa.timestamp("us", "UTC"), LOW, MIDDLE, HIGH),
    (pa.date32(), DAY, DAY + dt.timedelta(1), DAY + dt.timedelta(2)),
    (pa.decimal128(10, 2), Decimal("0.05"), Decimal("0.10"), Decimal("0.20")),
]


ASKED = {
    "0.15.0": (pa.int32(), pa.string()),
    "1.0.2": (pa.timestamp("us", "UTC"), pa.decimal128(10, 2)),
    "1.2.0": (pa.float64(), pa.string(), pa.date32(), pa.decimal128(10, 2)),
}
"""Types that each release is asked about in ``make test``; in 0.15.0 and 1.0.2 one of each outcome."""


@pytest.mark.parametrize(
    ("oracle", "kind"),
    [
        pytest.param(release, kind, id=f"{kind}-{release}", marks=() if kind in ASKED[release] else pytest.mark.slow)
        for release in RELEASES
        for kind, *_ in ORDERINGS
    ],
    indirect=["oracle"],
)
def test_ordering_values_of_deletes(oracle: Oracle, tmp_path: Path, kind: pa.DataType) -> None:
    """A delete that is too late does nothing, another one deletes; as far as Apache Hudi can compare them at all."""
    low, middle, high = next(values for other, *values in ORDERINGS if other == kind)
    rows = pa.table({"id": list("abc"), "ts": pa.array([middle] * 3, kind), "v": list("abc")})
    table = Table.from_rows(oracle, tmp_path / "t", rows)
    # 0.15.0 compares deletes with what is in logs, not with the base file
    table.upsert(rows.slice(0, 2))
    table.delete(["a", "b"], columns={"ts": pa.array([low, high], kind)})
    if oracle.release == "0.15.0" and kind not in (pa.int32(), pa.float64(), pa.timestamp("us", "UTC")):
        # it finds the values of records and deletes to be of different classes, and deletes
        assert table.snapshot()["id"].to_pylist() == ["c"]
        return
    if oracle.release == "1.0.2" and pa.types.is_decimal(kind):
        # it cannot read what it writes itself either
        with pytest.raises(OracleError, match="ClassCastException"):
            table.snapshot()
        return
    assert sorted(table.snapshot()["id"].to_pylist()) == ["a", "c"]


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", every_second([kind for kind, *_ in ORDERINGS]), ids=str)
def test_several_ordering_values_of_deletes(oracle: Oracle, tmp_path: Path, kind: pa.DataType) -> None:
    low, middle, high = next(values for other, *values in ORDERINGS if other == kind)
    first = pa.array([middle] * 4, kind)
    rows = pa.table({"id": list("abcd"), "o1": first, "o2": [5, 5, 5, 5]})
    fields = {"hoodie.datasource.write.precombine.field": "o1,o2"}
    table = Table.from_rows(oracle, tmp_path / "t", rows, **fields)
    table.delete(
        list("abc"),
        columns={"o1": pa.array([low, middle, high], kind), "o2": pa.array([9, 4, 1])},
        ordering=pa.schema([("o1", kind), ("o2", pa.int64())]),
    )
    assert sorted(table.snapshot()["id"].to_pylist()) == ["a", "b", "d"]
