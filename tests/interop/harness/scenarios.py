"""Scenarios of tables that both engines write alternately: engines, layouts, rows, and the model of the expected
content.

Every row is a function of its number and of the round in which it was written, so the content of a table is a mapping
number → round, and the model is independent of Hudi.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from tests.properties import FACTOR

KEYGEN = "org.apache.hudi.keygen."


@dataclass(frozen=True, slots=True)
class Engine:
    """A release of Apache Hudi and the table version in which both sides write."""

    release: str
    version: int

    def __str__(self) -> str:
        return f"{self.release}-v{self.version}"

    @property
    def options(self) -> dict[str, str]:
        """Return the options that let Apache Hudi write this version and not upgrade the table."""
        if self.release == "0.15.0":
            return {}
        return {"hoodie.write.table.version": str(self.version), "hoodie.write.auto.upgrade": "false"}


ENGINES = (
    Engine("0.15.0", 6),
    Engine("1.0.2", 8),
    Engine("1.1.1", 9),
    Engine("1.2.0", 6),
    Engine("1.2.0", 8),
    Engine("1.2.0", 9),
)


@dataclass(frozen=True)
class Layout:
    """Record key and partition style. ``path`` returns the partition path for a row number.

    ``read_as_text`` are columns that Apache Hudi returns as text regardless of their type in the files (the partition
    column of
    a TIMESTAMP key generator), while pyhudi returns the stored value. ``from_path`` are columns that it parses from the
    partition path and so changes (``2024-01-15`` becomes ``2024/01/15``): they are not compared.
    ``encoded_in_changes`` are columns whose values its incremental queries leave percent-encoded. ``hudi_rs``: hudi-rs
    supports the layout.
    """

    name: str
    options: dict[str, str]
    path: Callable[[int], str]
    key: Callable[[int], str] = lambda i: f"k{i:03d}"
    releases: tuple[str, ...] = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
    versions: tuple[int, ...] = (6, 8, 9)
    read_as_text: tuple[str, ...] = ()
    from_path: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    encoded_in_changes: tuple[str, ...] = ()
    hudi_rs: bool = True

    def __str__(self) -> str:
        return self.name

    def fits(self, engine: Engine) -> bool:
        """Return whether that release supports the layout in that version."""
        return engine.release in self.releases and engine.version in self.versions


def key_options(keys: str, partitions: str, **more: str) -> dict[str, str]:
    """Return the options of a layout: fields of keys and partitions (separated by commas), and ``hive``, ``encode``,
    ``slash`` or ``keygen``."""
    options = {
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.partitionpath.field": partitions,
    }
    if not partitions:
        options["hoodie.datasource.write.keygenerator.class"] = KEYGEN + "NonpartitionedKeyGenerator"
    names = {
        "hive": "hoodie.datasource.write.hive_style_partitioning",
        "encode": "hoodie.datasource.write.partitionpath.urlencode",
        "slash": "hoodie.datasource.write.slash.separated.date.partitioning",
        "keygen": "hoodie.datasource.write.keygenerator.class",
    }
    for name, value in more.items():
        options[names[name]] = KEYGEN + value if name == "keygen" else value
    return options


PARTS = ("a", "b", "c")
ODD = ("q/w:e=r é+%", "x y", "plain")
ODD_ENCODED = ("q%2Fw%3Ae%3Dr é+%25", "x y", "plain")
DAYS = ("2024-01-15", "2024-02-15", "2024-03-15")
EPOCH_MS = 1_700_000_000_000
MS_DAYS = ("2023/11/14", "2023/11/15", "2023/11/16")

_TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
    "hoodie.keygen.timebased.output.timezone": "UTC",
}


LAYOUTS = (
    Layout("none", key_options("id", ""), lambda _: ""),
    Layout("none-two-keys", key_options("id,num", ""), lambda _: "", lambda i: f"id:k{i:03d},num:{i}"),
    Layout("one", key_options("id", "part"), lambda i: PARTS[i % 3]),
    Layout("one-hive", key_options("id", "part", hive="true"), lambda i: f"part={PARTS[i % 3]}"),
    Layout(
        "two-hive",
        key_options("id,num", "part,sub", hive="true"),
        lambda i: f"part={PARTS[i % 3]}/sub={i % 2}",
        lambda i: f"id:k{i:03d},num:{i}",
    ),
    Layout("int-key", key_options("num", "sub"), lambda i: str(i % 2), str),
    Layout(
        "encoded", key_options("id", "odd", encode="true"), lambda i: ODD_ENCODED[i % 3], encoded_in_changes=("odd",)
    ),
    Layout(
        "encoded-hive",
        key_options("id", "odd", encode="true", hive="true"),
        lambda i: f"odd={ODD_ENCODED[i % 3]}",
        encoded_in_changes=("odd",),
    ),
    Layout(
        "slash-dates",
        # Apache Hudi's row writer fails on such a table: UTF8String cannot be cast to String
        {**key_options("id", "day", slash="true"), "hoodie.datasource.write.row.writer.enable": "false"},
        lambda i: DAYS[i % 3].replace("-", "/"),
        releases=("1.2.0",),
        versions=(9,),
        from_path={"1.2.0": ("day",)},
    ),
    Layout(
        "timestamp",
        {**key_options("id", "ms", keygen="TimestampBasedKeyGenerator"), **_TIMEBASED},
        lambda i: MS_DAYS[i % 3],
        read_as_text=("ms",),
        from_path={"0.15.0": ("ms",)},
    ),
    Layout(
        "custom",
        key_options("id,num", "part:simple,sub:simple", keygen="CustomKeyGenerator", hive="true"),
        lambda i: f"part={PARTS[i % 3]}/sub={i % 2}",
        lambda i: f"id:k{i:03d},num:{i}",
        # it does not know the types behind the field names in hoodie.table.partition.fields
        hudi_rs=False,
    ),
)


def rows(numbers: Iterable[int], round_: int, *, wide: bool) -> pa.Table:
    """Return the rows with these numbers as written in ``round_``; ``wide`` adds one column of every type that Hudi
    has."""
    some = list(numbers)
    columns: dict[str, pa.Array] = {
        "id": pa.array([f"k{i:03d}" for i in some], pa.string()),
        "num": pa.array(some, pa.int32()),
        "part": pa.array([PARTS[i % 3] for i in some], pa.string()),
        "sub": pa.array([i % 2 for i in some], pa.int32()),
        "odd": pa.array([ODD[i % 3] for i in some], pa.string()),
        "day": pa.array([DAYS[i % 3] for i in some], pa.string()),
        "ms": pa.array([EPOCH_MS + i % 3 * 86_400_000 for i in some], pa.int64()),
        "name": pa.array([None if i % 7 == 3 else f"n{i}/{round_}" for i in some], pa.string()),
        "qty": pa.array([i * round_ for i in some], pa.int32()),
        "price": pa.array([i / 3 + round_ for i in some], pa.float64()),
        "seq": pa.array([round_] * len(some), pa.int64()),
    }
    return pa.table({**columns, **(_wide(some, round_) if wide else {})})


def _wide(some: list[int], round_: int) -> dict[str, pa.Array]:
    """Return one column of every type of the format, every fifth value null. Arrays have no null elements, because
    Apache Hudi's Avro writer cannot write those."""
    date, moment = dt.date(1967, 4, 7), dt.datetime(2001, 1, 1, 0, 0, 0, 123456)
    inner = pa.struct([("q", pa.int32()), ("r", pa.date32())])

    def column(kind: pa.DataType, value: Callable[[int], object]) -> pa.Array:
        return pa.array([None if (i + round_) % 5 == 0 else value(i) for i in some], kind)

    return {
        "b": column(pa.bool_(), lambda i: i % 2 == 0),
        "i64": column(pa.int64(), lambda i: i * -1_000_000_000_000),
        "f": column(pa.float32(), lambda i: i / 3),
        "bin": column(pa.binary(), lambda i: bytes([0, i % 256, 255])),
        "dec9": column(pa.decimal128(9, 2), lambda i: Decimal(i * 111).scaleb(-2)),
        "dec18": column(pa.decimal128(18, 6), lambda i: Decimal(i * -123456789).scaleb(-6)),
        "dec38": column(pa.decimal128(38, 10), lambda i: Decimal(i * 10**15 + round_).scaleb(-10)),
        "dt": column(pa.date32(), lambda i: date + dt.timedelta(days=i * 400)),
        "at": column(pa.timestamp("us", "UTC"), lambda i: (moment + dt.timedelta(seconds=i)).replace(tzinfo=dt.UTC)),
        "ntz": column(pa.timestamp("us"), lambda i: moment - dt.timedelta(days=i * 365)),
        "st": column(
            pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string()), ("w", pa.list_(pa.float64()))]))]),
            lambda i: {"x": i, "y": None if i % 4 == 0 else {"z": f"z{i}", "w": [i + 0.5, -1.0]}},
        ),
        "arr": column(pa.list_(pa.string()), lambda i: [] if i % 4 == 1 else [f"e{i}", "n", ""]),
        "arrs": column(
            pa.list_(pa.struct([("k", pa.string()), ("v", pa.int64())])),
            lambda i: [{"k": "k", "v": i}, {"k": "n", "v": None}],
        ),
        "m": column(pa.map_(pa.string(), pa.int32()), lambda i: [("m1", i), ("m2", None)]),
        "mm": column(pa.map_(pa.string(), inner), lambda i: [("e", None), ("q", {"q": i, "r": dt.date(2000, 2, 29)})]),
    }


@dataclass(frozen=True)
class Scenario:
    """A table: its release and version, its layout, merge mode and index, and the engine that writes first."""

    engine: Engine
    layout: Layout
    wide: bool = False
    event_time: bool = False
    index: str = "SIMPLE"
    metadata: bool = True
    ours_first: bool = False
    merge_on_read: bool = False

    def __str__(self) -> str:
        traits = [
            str(self.engine),
            str(self.layout),
            "wide" if self.wide else "plain",
            "event" if self.event_time else "commit",
            self.index.lower(),
            "mdt" if self.metadata else "nomdt",
            "ours1st" if self.ours_first else "theirs1st",
            *(["mor"] if self.merge_on_read else []),
        ]
        return ",".join(traits)

    @property
    def table_options(self) -> dict[str, str]:
        """Return the options that both engines pass with every write."""
        options = {
            "hoodie.table.name": "shared",
            **self.layout.options,
            **self.engine.options,
            "hoodie.index.type": self.index,
            "hoodie.metadata.enable": str(self.metadata).lower(),
        }
        if self.merge_on_read:
            options["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
        if self.engine.version == 6:
            # the payload class decides, and 0.15.0 requires an ordering field: its default is a column `ts`
            payload = "DefaultHoodieRecordPayload" if self.event_time else "OverwriteWithLatestAvroPayload"
            options["hoodie.datasource.write.payload.class"] = f"org.apache.hudi.common.model.{payload}"
        if self.event_time or self.engine.version == 6:
            options["hoodie.datasource.write.precombine.field"] = "seq"
        if self.wide and self.engine.release < "1.1":
            # its upserts turn lists into nulls when they merge a file of its own row writer
            options["hoodie.datasource.write.row.writer.enable"] = "false"
        return options

    def rows(self, numbers: Iterable[int], round_: int) -> pa.Table:
        """Return rows of this table; only 1.1 and later support timestamps without a zone."""
        table = rows(numbers, round_, wide=self.wide)
        return table.drop_columns(["ntz"]) if self.wide and self.engine.release < "1.1" else table

    @property
    def compared(self) -> list[str]:
        """Return the user columns that are compared."""
        altered = self.layout.from_path.get(self.engine.release, ())
        return [name for name in self.rows([], 0).column_names if name not in altered]


PARALLELISM = {
    f"hoodie.{name}.parallelism": "2"
    for name in (
        *("insert.shuffle", "upsert.shuffle", "delete.shuffle", "bulkinsert.shuffle"),
        *("bloom.index", "simple.index", "global.simple.index"),
    )
}
"""Settings that keep Apache Hudi from starting two hundred tasks for twenty rows."""

NO_METADATA_TABLE = {"hoodie.metadata.enable": "false"} if FACTOR < 1 else {}
"""Settings of tables whose metadata table is no subject of a test, and is written only where nothing is skipped. With
one, 1.2.0 writes ten rows in 2.1 s, with one that only lists files in 1.3 s, and without in 0.7 s."""

NO_COLUMN_STATISTICS = {"hoodie.metadata.index.column.stats.enable": "false"} if FACTOR < 1 else {}
"""The same of tables whose metadata table is a subject, and whose column statistics are none."""


@dataclass(frozen=True)
class Step:
    """One commit: an operation, the numbers it writes and, for the stale ones, the earlier round that they carry."""

    operation: str
    numbers: tuple[int, ...] = ()
    stale: tuple[int, ...] = ()
    partitions: tuple[str, ...] = ()
    mode: str = "append"

    @property
    def options(self) -> dict[str, str]:
        """Return the write options of this step."""
        options = {"hoodie.datasource.write.operation": self.operation}
        if self.partitions:
            options["hoodie.datasource.write.partitions.to.delete"] = ",".join(self.partitions)
        return options

    def rows(self, scenario: Scenario, round_: int) -> pa.Table:
        """Return the rows passed to the writer; dropping a partition requires a DataFrame, too."""
        return pa.concat_tables([scenario.rows(self.numbers, round_), scenario.rows(self.stale, 0)])


@dataclass
class Model:
    """Expected content of the table: row number → round that wrote it."""

    scenario: Scenario
    content: dict[int, int] = field(default_factory=dict)

    def apply(self, step: Step, round_: int) -> None:
        """Apply a step."""
        path = self.scenario.layout.path
        if step.operation == "delete":
            for number in step.numbers:
                self.content.pop(number, None)
            return
        if step.operation == "insert_overwrite":
            self._drop({path(number) for number in step.numbers})
        elif step.operation == "insert_overwrite_table":
            self.content.clear()
        elif step.operation == "delete_partition":
            self._drop(set(step.partitions))
            return
        self.content.update(dict.fromkeys(step.numbers, round_))
        for number in step.stale:
            if number not in self.content or not self.scenario.event_time:
                self.content[number] = 0

    def _drop(self, paths: set[str]) -> None:
        path = self.scenario.layout.path
        self.content = {number: round_ for number, round_ in self.content.items() if path(number) not in paths}

    def table(self) -> pa.Table:
        """Return the rows (comparable columns), with record key and partition path as meta columns."""
        layout = self.scenario.layout
        parts = [self.scenario.rows([number], round_) for number, round_ in self.content.items()]
        table = pa.concat_tables([self.scenario.rows([], 0), *parts]).select(self.scenario.compared)
        for name in set(layout.read_as_text) & set(self.scenario.compared):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
        keys = [layout.key(number) for number in self.content]
        paths = [layout.path(number) for number in self.content]
        return table.append_column("_hoodie_record_key", pa.array(keys, pa.string())).append_column(
            "_hoodie_partition_path", pa.array(paths, pa.string())
        )


def ping_pong_steps(layout: Layout) -> list[Step]:
    """Return nine commits with every kind of change; the engines alternate, so over the scenarios each kind is done by
    each engine."""
    third = layout.path(1)
    drop = Step("delete_partition", partitions=(third,)) if third else Step("upsert", numbers=(4, 7, 40))
    return [
        Step("bulk_insert", numbers=tuple(range(24)), mode="overwrite"),
        Step("upsert", numbers=(0, 1, 5, 24, 25), stale=(8,)),
        Step("insert", numbers=(26, 27, 28)),
        Step("delete", numbers=(2, 5, 26)),
        Step("upsert", numbers=(2, 3, 6, 29), stale=(0,)),
        Step("insert_overwrite", numbers=(0, 3, 30)),
        drop,
        Step("bulk_insert", numbers=(31, 32, 33)),
        Step("upsert", numbers=(0, 31, 34)),
    ]
