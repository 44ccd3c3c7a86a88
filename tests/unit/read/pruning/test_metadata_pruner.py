"""Data skipping: what is left out never has a row of the answer, whatever the statistics leave unsaid."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import MetadataTableWarning, QueryError
from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex, expression_definition
from pyhudi.metadata.indexes.index_definitions import store_definitions
from pyhudi.metadata.reader import partition_freshness
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import RecordType, encode
from pyhudi.read.execution.local_reader import scan_table
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.pruning import metadata_pruner
from pyhudi.read.pruning.indexes import expression_index_pruning as read_expressions
from pyhudi.read.pruning.indexes.record_index_pruning import equality_keys
from pyhudi.read.pruning.statistics import partition_stats_pruning
from pyhudi.read.pruning.statistics.column_statistics import is_ordered_type
from pyhudi.read.scan_planner import FilterSession, plan_scan
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.view.file_listing import list_files
from tests.golden.expected import unpack
from tests.metadata_tables import attach, file_lists, grouped, statistics
from tests.properties import examples
from tests.tables import HandMadeTable, at

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("m", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("x", pa.struct([("y", pa.int32())])),
    ]
)
COLUMNS = ("b", "i", "l", "f", "d", "s", "m", "day", "t", "x.y")
OFF = {"hoodie.enable.data.skipping": "false"}
NAN = float("nan")
Rows = Sequence[Mapping[str, Any]]
Stats = tuple[Any, Any, int, int]
"""Least and greatest value, number of values, number of nulls."""


def leaf(rows: pa.Table, column: str) -> pa.Array:
    array = rows[column.split(".")[0]].combine_chunks()
    return pc.struct_field(array, "y") if column == "x.y" else array


def bounds(values: pa.Array) -> tuple[Any, Any, int]:
    """As the original's Parquet files have them: none at all where something is not a number."""
    values_list = values.to_pylist()
    if any(isinstance(v, float) and math.isnan(v) for v in values_list):
        return None, None, 0
    ends = pc.min_max(values)
    return ends["min"].as_py(), ends["max"].as_py(), values.null_count


def build(
    root: Path,
    files: Mapping[tuple[str, str], Rows],
    *,
    logs: Mapping[tuple[str, str], Rows] | None = None,
    without: Sequence[tuple[str, str]] = (),
    change: Mapping[tuple[str, str], Stats] | None = None,
    partition_stats: bool = True,
    properties: dict[str, str] | None = None,
) -> HandMadeTable:
    """A table with statistics of all its files; ``without`` (file, column) some, ``change`` (least, greatest, values,
    nulls) instead of what is true."""
    more = dict(properties or {})
    if logs:
        more["hoodie.table.type"] = "MERGE_ON_READ"
    table = HandMadeTable(root, schema=SCHEMA, properties=more)
    table.write(1, files)
    if logs:
        table.log(2, logs)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"], "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]}).sort_by("partition")
    parts, wide = [], []
    for column in COLUMNS:
        arrow = SCHEMA.field("x").type.field("y").type if column == "x.y" else SCHEMA.field(column).type
        seen: dict[str, list[Stats]] = {}
        of_files = []
        for partition, file_id, kind, name in zip(
            *(listed[c].to_pylist() for c in ("partition", "file_id", "kind")), names.to_pylist(), strict=True
        ):
            rows = (files if kind == "base" else logs or {})[(partition, file_id)]
            values = leaf(pa.Table.from_pylist([dict(row) for row in rows], SCHEMA), column)
            low, high, nulls = bounds(values)
            stats = (change or {}).get((file_id, column), (low, high, len(values), nulls))
            seen.setdefault(partition, []).append(stats)
            if (file_id, column) not in without:
                of_files.append((partition, name, *stats))
        of_partitions = []
        for partition, found in seen.items():
            lows = [low for low, *_ in found if low is not None]
            highs = [high for _, high, *_ in found if high is not None]
            low, high = (min(lows), max(highs)) if lows else (None, None)
            of_partitions.append((partition, partition, low, high, sum(f[2] for f in found), sum(f[3] for f in found)))
        parts.append(of_column(RecordType.COLUMN_STATS, column, arrow, of_files))
        wide.append(of_column(RecordType.PARTITION_STATS, column, arrow, of_partitions))
    key, value = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
    made = {"files": file_lists(every), "column_stats": grouped(key, value, 2)}
    if partition_stats:
        made["partition_stats"] = [tuple(pa.concat_arrays(column) for column in zip(*wide, strict=True))]
    attach(table.storage, made, at(9))
    return table


def one(
    kind: RecordType,
    column: str,
    partition: str,
    name: str,
    arrow: pa.DataType,
    low: Any,
    high: Any,
    n: int,
    nulls: int,
) -> tuple[pa.Array, pa.Array]:
    return of_column(kind, column, arrow, [(partition, name, low, high, n, nulls)])


def of_column(
    kind: RecordType, column: str, arrow: pa.DataType, rows: Sequence[tuple[Any, ...]]
) -> tuple[pa.Array, pa.Array]:
    """Keys and values of the statistics of one column: rows of (partition, name, least, greatest, values, nulls)."""
    types = (pa.string(), pa.string(), arrow, arrow, pa.int64(), pa.int64())
    columns = (pa.array(values, type_) for values, type_ in zip(zip(*rows, strict=True), types, strict=True))
    return statistics(kind, [column] * len(rows), *columns)


def ids(table: HandMadeTable, condition: Any, options: dict[str, str] | None = None) -> set[str]:
    scan = HudiTable.for_path(str(table.root), options).scan(condition, columns=["id"])
    return set(scan.to_arrow()["id"].to_pylist())


def plan(table: HandMadeTable, condition: Any, **more: Any) -> Any:
    return HudiTable.for_path(str(table.root)).scan(condition, **more).plan()


def value(random: np.random.Generator, column: str, file: int) -> Any:
    """Values of a file lie near each other, so that some files can be left out."""
    n = int(random.integers(0, 6)) + 4 * file
    if random.random() < 0.1:
        return None
    match column:
        case "b":
            return bool(n % 2) if file % 2 else True
        case "f" | "d":
            return random.choice([NAN, -0.0, 0.0, n / 10, -n / 10, math.inf], p=[0.03, 0.05, 0.05, 0.7, 0.15, 0.02])
        case "s":
            return random.choice(["", "😀", "\uff5e", f"text {n}", f"text {n:03d}"], p=[0.05, 0.1, 0.1, 0.35, 0.4])
        case "m":
            return Decimal(n * 37 - 300) / 100
        case "day":
            return dt.date(1970, 1, 1) + dt.timedelta(days=n - 5)
        case "t":
            return dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(hours=3 * n)
        case _:
            return n - 6


def row(random: np.random.Generator, key: str, partition: str, file: int) -> dict[str, Any]:
    values = {column: value(random, column, file) for column in COLUMNS if column != "x.y"}
    y = value(random, "i", file)
    return {"id": key, "p": partition, **values, "x": None if y is None else {"y": y}}


def conditions(random: np.random.Generator, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        groups = []
        for _ in range(int(random.integers(1, 3))):
            terms = []
            for _ in range(int(random.integers(1, 3))):
                column = str(random.choice(COLUMNS))
                op = str(random.choice(["=", "!=", "<", "<=", ">", ">=", "in", "not in"]))
                operands = [value(random, column.replace("x.y", "i"), int(random.integers(0, 8))) for _ in range(3)]
                operands = [v.item() if isinstance(v, np.generic) else v for v in operands]
                if op in ("in", "not in"):
                    terms.append((column, op, operands))
                elif operands[0] is not None or op in ("=", "!="):
                    terms.append((column, op, operands[0]))
            if terms:
                groups.append(terms)
        if groups:
            found.append(groups)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("with_logs", [False, True])
def test_the_same_rows(seed: int, with_logs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if seed:  # whole partitions go first
        monkeypatch.setattr(metadata_pruner, "_MANY_PARTITIONS", 1)
    random = np.random.default_rng(seed)
    files = {
        (f"p{n % 3}", f"f{n}-0"): [row(random, f"k{n}-{i}", f"p{n % 3}", n) for i in range(int(random.integers(1, 6)))]
        for n in range(8)
    }
    logs = None
    if with_logs:
        logs = {
            key: [row(random, r["id"], key[0], int(random.integers(0, 8))) for r in rows[:2]]
            for key, rows in list(files.items())[::2]
        }
    table = build(tmp_path / "t", files, logs=logs, without=[("f1-0", "i"), ("f2-0", "s"), ("f3-0", "d")])
    skipped = 0
    for condition in conditions(random, examples(24)):
        assert ids(table, condition) == ids(table, condition, OFF), condition
        skipped += any(" 0 of" not in line and " out" in line for line in plan(table, condition).skipped)
    assert skipped > 4


def simple(n: int, **values: Any) -> dict[str, Any]:
    return {"id": f"k{n}", "p": "a", **values}


def test_files_and_partitions_are_left_out(tmp_path: Path):
    files = {(f"p{n // 2}", f"f{n}-0"): [{"id": f"k{n}", "p": f"p{n // 2}", "i": n, "s": f"s{n}"}] for n in range(6)}
    table = build(tmp_path / "t", files)
    found = plan(table, [("i", "=", 3)])
    assert found.tasks["file_id"].to_pylist() == ["f3-0"]
    assert found.partitions == ["p1"]
    assert found.skipped == (
        "partition_stats: 2 of 3 partitions out, by i",
        "column_stats: 1 of 2 slices out, by i",
    )
    assert found.partitions_before_pruning == 3
    assert "skipping    column_stats: 1 of 2 slices out, by i" in found.explain()
    assert plan(table, [("s", "=", "s4")]).tasks.num_rows == 1
    assert "no condition on a column with exact statistics" in plan(table, [("s", "=", "s4")]).skipped[0]
    assert plan(table, [[("i", "=", 0)], [("i", "=", 5)]]).tasks["file_id"].to_pylist() == ["f0-0", "f5-0"]
    assert plan(table, [("p", "=", "p1"), ("i", ">", 2)]).tasks["file_id"].to_pylist() == ["f3-0"]
    off = HudiTable.for_path(str(table.root), OFF).scan([("i", "=", 3)]).plan()
    assert off.tasks.num_rows == 6
    assert off.skipped == ("indexes: not used: hoodie.enable.data.skipping is false",)
    assert plan(table, pc.field("i") == 3).tasks.num_rows == 6
    # statistics of partitions are those of now
    assert "latest state" in plan(table, [("i", "=", 3)], as_of=at(1)).skipped[0]


def test_whole_partitions_are_left_out_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before slices are made: what a partition has without statistics, or in several files of a slice, keeps it."""
    files = {(f"p{n}", f"f{n}-0"): [{"id": f"k{n}", "p": f"p{n}", "i": n, "l": 5}] for n in range(6)}
    files["p5", "f0-0"] = [{"id": "again", "p": "p5", "i": 50, "l": 5}]  # called like the file in p0
    logs = {("p4", "f4-0"): [{"id": "k4", "p": "p4", "i": 40, "l": 2}]}
    table = build(tmp_path / "t", files, logs=logs, without=[("f2-0", "i")], partition_stats=False)
    assert plan(table, [("i", "=", 50)]).partitions == ["p2", "p5"]
    monkeypatch.setattr(metadata_pruner, "_MANY_PARTITIONS", 1)
    expected = {
        (("i", "=", 3),): ["p2", "p3"],
        (("i", "=", 50),): ["p2", "p5"],
        (("i", "=", 0),): ["p0", "p2"],
        (("i", "=", 4), ("l", "=", 2)): ["p4"],
        (("i", "=", 77), ("l", "=", 2)): [],
    }
    for condition, partitions in expected.items():
        found = plan(table, list(condition))
        assert found.partitions == partitions
        assert f"column_stats: {6 - len(partitions)} of 6 partitions out" in found.skipped[1]
        assert ids(table, list(condition)) == ids(table, list(condition), OFF)
    assert plan(table, [[("i", "=", 0)], [("i", "=", 5)]]).partitions == ["p0", "p2", "p5"]
    # where most partitions have such rows it is not worth to ask first
    monkeypatch.setattr(partition_stats_pruning, "_TRIED", 2)
    assert "slices out" in plan(table, [("i", ">", 0)]).skipped[1]
    assert "4 of 6 partitions out" in plan(table, [("i", "=", 4)]).skipped[1]
    # a metadata table that cannot be read is found out by those who need it
    broken = next(path for path in (table.root / ".hoodie/metadata/column_stats").iterdir())
    broken.write_bytes(broken.read_bytes()[:-100])
    with pytest.warns(MetadataTableWarning):
        assert plan(table, [("i", "=", 3)]).tasks.num_rows == 7


TRAPS = {
    "not a number is greater than all": ("d", [NAN, 1.0], (1.0, 1.0, 2, 0), [(">", 5.0), (">=", 5.0), ("!=", 1.0)]),
    "not a number in the bounds": ("d", [NAN, 7.0], (NAN, NAN, 2, 0), [("=", 7.0), ("<", 8.0), (">", 1.0)]),
    "minus zero": ("d", [-0.0], (0.0, 0.0, 1, 0), [("=", -0.0), ("=", 0.0), ("<=", 0.0), (">=", 0.0)]),
    "no bounds is not no values": ("i", [3], (None, None, 1, 0), [("=", 3), (">", 1), ("!=", None)]),
    "no bounds, and no word on nulls": ("i", [3, None], (None, None, 2, -1), [("=", 3), ("=", None)]),
    "bounds of nothing": ("s", ["x"], (None, None, 0, 0), [("=", "x"), ("!=", None)]),
    "bounds the wrong way round": ("i", [3], (5, 1, 1, 0), [("=", 3), (">", 2), ("<", 4)]),
    "texts in the order of UTF-16": ("s", ["😀", "\uff5e"], ("😀", "\uff5e", 2, 0), [("=", "😀"), (">=", "\uff5e")]),
    "half of a float": ("f", [0.1], (0.1, 0.1, 1, 0), [("=", 0.1), ("<=", 0.1)]),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap: str, tmp_path: Path):
    column, values, stats, terms = TRAPS[trap]
    rows = [simple(i, **{column: v}) for i, v in enumerate(values)]
    table = build(tmp_path / "t", {("a", "f0-0"): rows}, change={("f0-0", column): stats})
    for op, operand in terms:
        assert plan(table, [(column, op, operand)]).tasks.num_rows == 1, (op, operand)


WIDENED = {
    "as short": pa.array([0.1], pa.float32()),
    "bit by bit": pa.array([0.1], pa.float32()).cast(pa.float64()),
    "by their text": pa.array([0.1], pa.float64()),
}


@pytest.mark.parametrize("form", WIDENED)
def test_short_floats_that_have_become_long_ones(form: str, tmp_path: Path):
    """Old files have 0.1 as a short float, and readers 0.1; statistics may have either, or what the short one is bit by
    bit, which is greater."""
    fields = [("id", pa.string()), ("p", pa.string())]
    old, new = (pa.schema([*fields, ("f", kind)]) for kind in (pa.float32(), pa.float64()))
    table = HandMadeTable(tmp_path / "t", schema=old)
    table.write(1, {("a", "f0-0"): [{"id": "k0", "p": "a", "f": 0.1}]})
    table.write(2, {("a", "f1-0"): [{"id": "k1", "p": "a", "f": 5.25}]}, schema=new)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    values = {"f0-0": WIDENED[form], "f1-0": pa.array([5.25], pa.float64())}
    parts = [
        one(RecordType.COLUMN_STATS, "f", "a", name, end.type, end[0].as_py(), end[0].as_py(), 1, 0)
        for name, end in zip(names.to_pylist(), map(values.get, listed["file_id"].to_pylist()), strict=True)
        if end is not None
    ]
    key, value = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
    attach(table.storage, {"files": file_lists(every), "column_stats": grouped(key, value, 2)}, at(9))
    for condition in ([("f", "=", 0.1)], [("f", "<=", 0.1)], "f < 0.100000001", [("f", "in", [0.1, 7.0])]):
        assert plan(table, condition).tasks["file_id"].to_pylist() == ["f0-0"], condition
    assert ids(table, [("f", "=", 0.1)]) == {"k0"}
    assert plan(table, [("f", "=", 5.25)]).tasks["file_id"].to_pylist() == ["f1-0"]


NOON = dt.datetime(2024, 1, 1, 12)
WEST = dt.timezone(dt.timedelta(hours=-5))
MEANT = {
    "a time without a zone": (
        "t",
        [("=", NOON), (">=", NOON), ("in", [NOON]), ("=", pa.scalar(NOON)), ("=", str(NOON))],
    ),
    "a date as a time": ("t", [(">", dt.date(2024, 1, 1)), ("<=", dt.date(2024, 1, 2))]),
    "a time as a date": ("day", [("<", NOON), ("!=", NOON), ("<=", NOON.replace(tzinfo=WEST)), ("<", "2024-01-02")]),
    "a time of a zone": ("t", [("=", NOON.replace(tzinfo=WEST)), ("=", "2024-01-01 17:00:00+00:00")]),
}


@pytest.mark.parametrize("name", MEANT)
def test_what_has_no_zone_is_of_that_of_who_plans(name: str, tmp_path: Path):
    column, terms = MEANT[name]
    row = simple(0, t=NOON.replace(hour=17, tzinfo=dt.UTC), day=NOON.date())
    table = build(tmp_path / "t", {("a", "f0-0"): [row]})
    by_day = HandMadeTable(tmp_path / "days", schema=SCHEMA, partition_fields="day")
    by_day.write(1, {("2024-01-01", "f0-0"): [row]})
    for op, operand in terms:
        for each in (table, by_day):
            found = plan_scan(
                PinnedTable.of(each.client()), filter=[(column, op, operand)], session=FilterSession(WEST)
            )
            assert found.tasks.num_rows == 1, (op, operand)
            assert scan_table(found, each.storage).num_rows == 1
    found = plan_scan(PinnedTable.of(table.client()), filter=[("t", "=", NOON)])
    assert found.tasks.num_rows == 0, "without a zone it is UTC"
    for term in (("t", "<", NOON), ("day", ">", dt.datetime(2024, 1, 1)), ("day", "=", NOON)):
        assert plan_scan(
            PinnedTable.of(by_day.client()), filter=[term], session=FilterSession(WEST)
        ).tasks.num_rows == (term[0] == "t")
        assert plan_scan(PinnedTable.of(table.client()), filter=[term], session=FilterSession(WEST)).tasks.num_rows == 0


@pytest.mark.parametrize("column", ["t", "day"])
@pytest.mark.parametrize("value", [5, "soon", True, b"x", dt.time(12), "2024-01-01 00:00:00.0000001"])
def test_what_is_no_time_is_refused_whatever_there_is_to_read(column: str, value: object, tmp_path: Path):
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    table.write(1, {("a", "f0-0"): [simple(0)]})
    for op, operand in (("=", value), ("in", [value])):
        with pytest.raises(QueryError, match=f"cannot be compared with column '{column}'.*2024-01-31"):
            plan(table, [(column, op, operand), ("p", "=", "nowhere")])


def test_files_without_statistics_in_partitions_with_some(tmp_path: Path):
    """The trap that statistics of partitions are: they know nothing of files without statistics."""
    files = {("a", "f0-0"): [simple(0, d=1.0, s="a")], ("a", "f1-0"): [simple(1, d=NAN, s="z" * 9000)]}
    gone = {("f1-0", "s"): (None, None, 1, 0)}
    table = build(tmp_path / "t", files, change=gone)
    assert ids(table, [("s", ">", "b")]) == {"k1"}
    assert ids(table, [("d", "<", 0.5)]) == set()
    assert plan(table, [("d", ">", 3.0)]).tasks["file_id"].to_pylist() == ["f0-0", "f1-0"]


def test_statistics_of_partitions_that_were_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A writer that keeps up the list of files alone, as a delta commit of the metadata table tells."""
    table = build(tmp_path / "t", {("a", "f0-0"): [simple(0, i=1)]}, partition_stats=True)
    asked: list[str] = []
    known = partition_freshness.written_by

    def written_by(storage: Any, active: Any, instant: Any) -> Any:
        asked.append(instant.requested)
        return known(storage, active, instant)

    monkeypatch.setattr(partition_freshness, "written_by", written_by)
    assert ids(table, [("i", "=", 1)]) == {"k0"}
    assert not asked, "names of files tell enough"
    table.write(20, {("a", "f1-0"): [simple(1, i=50)]})
    from pyhudi.format.file_names import log_file_name
    from pyhudi.format.log import BlockType, Header
    from tests.metadata_tables import FOLDER
    from tests.unit.format.log.samples import block

    listed, _ = list_files(table.storage, ["a"])
    name = next(path for path in listed["path"].to_pylist() if at(20) in path)
    size = table.storage.stat(name).size
    every = pa.table({"partition": ["a"], "name": [name.rpartition("/")[2]], "size": [size]})
    key, values = file_lists(every)[0]
    from pyhudi.format.hfile.hfile_writer import write_hfile
    from pyhudi.metadata.records.metadata_record import record_schema

    order = pc.sort_indices(key.cast(pa.binary()))
    content = write_hfile(key.take(order), values.take(order), schema=record_schema(9))
    headers = {int(Header.INSTANT_TIME): at(20), int(Header.SCHEMA): record_schema(9)}
    path = "files/" + log_file_name("files-0000-0", at(20), 1, "0-0-0")
    table.storage.write(f"{FOLDER}/{path}", block(int(BlockType.HFILE_DATA), headers, content))
    from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats

    stats = [{"partitionPath": "files", "fileId": "files-0000-0", "path": path, "fileSizeInBytes": 1}]
    data = CommitMetadata("UPSERT_PREPPED", write_stats(stats), {}).encode(9, "deltacommit")
    table.storage.write(f"{FOLDER}/.hoodie/timeline/{at(20)}_{at(20)}.deltacommit", data)
    assert ids(table, [("i", "=", 50)]) == {"k1"}
    assert "has added files, but has not updated it" in plan(table, [("i", "=", 50)]).skipped[0]
    assert set(asked) == {at(20)}


def test_merged_rows_take_values_of_several_files(tmp_path: Path):
    """Partial updates: neither the base file nor the log file alone has a row that meets the filter."""
    base = {("a", "f0-0"): [simple(0, i=1, l=5)]}
    logs = {("a", "f0-0"): [simple(0, i=None, l=2)]}
    table = build(tmp_path / "t", base, logs=logs)
    assert plan(table, [("i", "=", 1), ("l", "=", 2)]).tasks.num_rows == 1
    assert plan(table, [("i", "=", 9)]).tasks.num_rows == 0


def test_other_mergers_make_other_values(tmp_path: Path):
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "pyhudi.test.sum"}
    table = build(
        tmp_path / "t", {("a", "f0-0"): [simple(0, i=1)]}, logs={("a", "f0-0"): [simple(0, i=2)]}, properties=custom
    )
    from pyhudi.errors import UnsupportedTableError

    # the plan wants the merger: the slice is not left out
    with pytest.raises(UnsupportedTableError):
        plan(table, [("i", "=", 3)])
    assert plan(table, [("id", "=", "other")], read_optimized=True).tasks.num_rows <= 1


def test_keys_by_the_record_index(tmp_path: Path):
    golden = unpack("v9_mor_meta_all", tmp_path)
    table = HudiTable.for_path(str(golden.path))
    every = table.scan(columns=["_hoodie_record_key", "id", "part"]).to_arrow()
    for text in every["id"].to_pylist():
        scan = table.scan([("id", "=", text)], columns=["id"])
        assert scan.to_arrow()["id"].to_pylist() == [text]
        assert scan.plan().tasks.num_rows == 1
        assert any("record_index: 1 of 2 partitions out" in line for line in scan.plan().skipped)
    some = every["id"].to_pylist()[:5]
    assert sorted(table.scan([("_hoodie_record_key", "in", some)]).to_arrow()["id"].to_pylist()) == sorted(some)
    assert table.scan([("id", "=", "not there")]).plan().tasks.num_rows == 0


def test_bloom_filters_for_keys(tmp_path: Path):
    from pyhudi.format.bloom_filter import BloomFilter
    from pyhudi.metadata.records import metadata_keys

    files = {("a", f"f{n}-0"): [simple(n)] for n in range(4)}
    table = build(tmp_path / "t", files)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    payload = pa.table(
        {
            "type": ["DYNAMIC_V0"] * 3,
            "timestamp": [at(1)] * 3,
            "bloomFilter": [
                BloomFilter.build(pa.array([f"k{file_id[1]}"])).serialize().encode()
                for file_id in listed["file_id"].to_pylist()[:3]
            ],
        }
    )
    key = metadata_keys.bloom_filter_keys(listed["partition"].combine_chunks()[:3], names[:3])
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    blooms = grouped(key, encode(RecordType.BLOOM_FILTER, payload, 9), 2)
    attach(table.storage, {"files": file_lists(every), "bloom_filters": blooms}, at(9))
    missing = listed["file_id"].to_pylist()[3]
    for n in range(4):
        found = plan(table, [("id", "=", f"k{n}")])
        assert set(found.tasks["file_id"].to_pylist()) == {f"f{n}-0", missing}
        assert "bloom_filters: " in found.skipped[1]


@pytest.mark.parametrize("name", ["v9_cow_evolution", "v8_cow_alter"])
def test_columns_that_were_changed(name: str, tmp_path: Path):
    """Renamed, added, promoted and dropped columns, as Apache Hudi has done it."""
    path = str(unpack(name, tmp_path).path)
    table, plain = HudiTable.for_path(path), HudiTable.for_path(path, OFF)
    every = table.scan().to_arrow()
    for field in every.schema:
        if not is_ordered_type(field.type) or field.name.startswith("_hoodie"):
            continue
        values = every[field.name].unique().to_pylist()[:4]
        for condition in [(field.name, op, v) for v in values for op in ("=", "<") if v is not None or op == "="]:
            found, expected = (t.scan([condition], columns=[field.name]).to_arrow() for t in (table, plain))
            assert found.sort_by(field.name).equals(expected.sort_by(field.name)), condition


SQL = {
    "i = 3": ["f3-0"],
    "I > 1 and s like 's%' and i < 4": ["f2-0", "f3-0"],
    "s like 's4%' or i in (0, 99)": ["f0-0", "f4-0"],
    "p = 'p1' and i <> 2": ["f3-0"],
    "p = 'p1' and length(s) > 100": ["f2-0", "f3-0"],
    "length(s) > 100": [f"f{n}-0" for n in range(6)],
    "not (i >= 1) or x.y = 5": ["f0-0", "f5-0"],
}


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> HandMadeTable:
    """A table whose file ``f{n}-0`` has one row of number n."""
    files = {
        (f"p{n // 2}", f"f{n}-0"): [{"id": f"k{n}", "p": f"p{n // 2}", "i": n, "s": f"s{n}", "x": {"y": n}}]
        for n in range(6)
    }
    return build(tmp_path_factory.mktemp("numbered") / "t", files)


@pytest.mark.parametrize("text", SQL)
def test_conditions_in_sql(text: str, numbered: HandMadeTable):
    assert plan(numbered, text).tasks["file_id"].to_pylist() == SQL[text]
    if text == "length(s) > 100":
        assert "the filter has no supported SQL comparison" in plan(numbered, text).skipped[0]


def test_expressions_of_which_nothing_is_sure(tmp_path: Path):
    """Rows without a value are not counted among the values of an expression: as many of both are not nulls alone."""
    texts = {"f0-0": (None, None, 1, 1), "f1-0": (None, None, 0, 1), "f2-0": ("a", "b", 1, 0)}
    files = {("a", file_id): [simple(0, s="x"), simple(1)] for file_id in texts}
    table = build(tmp_path / "t", files)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    made, definitions = {"files": file_lists(every)}, {}
    for index, kind, stats in (
        ("lower", pa.string(), texts),
        ("unix_timestamp", pa.int64(), dict.fromkeys(texts, (1, 1, 1, 0))),
    ):
        parts = [
            one(RecordType.COLUMN_STATS, "s", "a", name, kind, *stats[file_id])
            for name, file_id in zip(names.to_pylist(), listed["file_id"].to_pylist(), strict=True)
        ]
        key, value = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
        made[f"expr_index_{index}"] = grouped(key, value, 2)
        found = ExpressionIndex.of(f"expr_index_{index}", "column_stats", "s", {"expr": index})
        definitions[found.partition] = expression_definition(found, {"expr": index}, 9)
    attach(table.storage, made, at(9))
    store_definitions(table.storage, TableConfig.load(table.storage), definitions)
    assert plan(table, "lower(s) = 'x'").tasks["file_id"].to_pylist() == ["f0-0"]
    assert plan(table, "lower(s) > 'c'").tasks["file_id"].to_pylist() == ["f0-0"]
    assert plan(table, "lower(s) is not null").tasks["file_id"].to_pylist() == ["f0-0", "f2-0"]
    found = plan(table, "unix_timestamp(s) = 5")
    assert found.tasks.num_rows == 3
    assert "unix_timestamp(s, 'yyyy-MM-dd HH:mm:ss') depend on how" in found.skipped[-1]
    assert "spark.sql.legacy.timeParserPolicy" in found.skipped[-1]
    pinned = PinnedTable.of(table.client())
    hidden = plan_scan(
        pinned, filter=RowFilter.parse("lower(s) = 'x'"), session=FilterSession(overridden_functions=["lower"])
    )
    assert hidden.tasks.num_rows == 3
    assert any("has redefined the functions lower" in line for line in hidden.skipped)


def test_whole_partitions_are_left_out_by_expressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where no value is null, and every write has told the index; files go next."""
    told = {"a": ("aa", "cc", 2, 0), "b": ("dd", "ff", 2, 0), "c": ("dd", "ff", 2, 1)}
    files = {(p, f"f{p}-{n}"): [simple(n, s="dd")] for p in told for n in range(2)}
    table = build(tmp_path / "t", files)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    index = ExpressionIndex.of("expr_index_low", "column_stats", "s", {"expr": "lower"})
    rows = [
        one(RecordType.COLUMN_STATS, "s", p, name, pa.string(), "dd", "dd", 1, 0)
        for p, name in zip(listed["partition"].to_pylist(), names.to_pylist(), strict=True)
    ]
    for p, stats in told.items():
        _, value = one(RecordType.PARTITION_STATS, "s", p, p, pa.string(), *stats)
        rows.append((metadata_keys.expression_partition_keys(pa.array(["s"]), pa.array([p])), value))
    key, value = (pa.concat_arrays(column) for column in zip(*rows, strict=True))
    attach(table.storage, {"files": file_lists(every), index.partition: grouped(key, value, 2)}, at(9))
    store_definitions(
        table.storage,
        TableConfig.load(table.storage),
        {index.partition: expression_definition(index, {"expr": "lower"}, 9)},
    )
    found = plan(table, "lower(s) = 'aa' or lower(s) = 'bb'")
    assert "expr_index_low: 1 of 3 partitions out, by lower(s)" in found.skipped
    assert "expr_index_low: 4 of 4 slices out, by lower(s)" in found.skipped
    assert not found.tasks.num_rows
    found = plan(table, "lower(s) = 'dd' and i >= 0")
    assert "expr_index_low: 1 of 3 partitions out, by lower(s)" in found.skipped
    assert sorted(found.tasks["partition"].to_pylist()) == ["b", "b", "c", "c"]
    assert "expr_index_low: 0 of 3 partitions out, by lower(s)" in plan(table, "lower(s) = 'dd' or i = 7").skipped
    assert "partitions out" not in str(plan(table, "lower(s) = 'dd'", as_of=at(1)).skipped)
    monkeypatch.setattr(read_expressions, "statistics_are_current", lambda *_: "20 has added files")
    found = plan(table, "lower(s) = 'dd'")
    assert "expr_index_low: not used for partitions: 20 has added files" in found.skipped
    assert found.tasks.num_rows == 6


@pytest.mark.parametrize("version", [6, 8])
def test_keys_of_one_field_are_looked_for_in_both_forms(version: int, tmp_path: Path):
    """Below version 9 a complex key generator has made either `k1` or `id:k1`, and the table does not say which."""
    table = HandMadeTable(tmp_path / "t", version=version, schema=SCHEMA)
    if version == 8:
        TableConfig.load(table.storage).updated(table.storage, set={"hoodie.table.keygenerator.type": "COMPLEX"})
    assert named_keys(table, [("id", "in", ["k1", "k2"])]) == ["id:k1", "id:k2", "k1", "k2"]


def test_keys_of_timestamps_are_not_made(tmp_path: Path):
    """What they look like is an option of each write."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties={"hoodie.table.recordkey.fields": "t"})
    assert named_keys(table, [("t", "=", dt.datetime(2024, 1, 1, tzinfo=dt.UTC))]) is None


def test_keys_of_dates_are_not_made_of_times(tmp_path: Path):
    """The day of a time is one of the session's zone."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA, properties={"hoodie.table.recordkey.fields": "day"})
    assert named_keys(table, [("day", "=", dt.date(2024, 1, 1))]) == ["2024-01-01"]
    assert named_keys(table, [("day", "=", dt.datetime(2023, 12, 31, 15))]) is None
    assert named_keys(table, [("day", "in", [dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)])]) is None


def test_settings_in_sql_leave_nothing_out(tmp_path: Path):
    """What they stand for is known to the session alone."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    table.write(1, {("1", "a"): [{"id": "k1", "p": "1", "i": 5}]})
    for condition in ("id = '${x}'", "i = 6 AND ${c}", "p = '2' AND ${c}"):
        assert HudiTable.for_path(str(tmp_path / "t")).scan(filter=condition).plan().tasks.num_rows == 1


def test_rows_beside_row_groups_of_what_is_no_number(tmp_path: Path):
    """Statistics of row groups do not tell of it."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    rows = [{"id": "k1", "p": "1", "d": 0.5, "f": 0.5}, {"id": "k2", "p": "1", "d": NAN, "f": NAN}]
    table.write(1, {("1", "a"): rows})
    for column in ("d", "f"):
        for op, value in (("not in", [math.inf, 0.5]), ("not in", [0.5]), ("!=", 0.5), ("in", [NAN, 7.0])):
            found = HudiTable.for_path(str(tmp_path / "t")).scan(filter=[(column, op, value)]).to_arrow()
            assert found["id"].to_pylist() == ["k2"], (column, op, value)


def named_keys(table: HandMadeTable, condition: Any) -> list[str] | None:
    rows = RowFilter.parse(condition)
    assert rows is not None
    found = equality_keys(rows, SCHEMA, TableConfig.load(table.storage), Options.parse({}))
    return None if found is None else found.to_pylist()
