"""Hand-made tables with a metadata table of statistics, and queries of them."""

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

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.records.metadata_record import RecordType
from pyhudi.table.view.file_listing import list_files
from tests.metadata_tables import attach, file_lists, grouped, statistics
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
_MAX_STATISTICS = 4096
"""Bytes above which a Parquet footer has no statistics of a column."""
Rows = Sequence[Mapping[str, Any]]
Stats = tuple[Any, Any, int, int]
"""Least and greatest value, number of values, number of nulls."""


def leaf(rows: pa.Table, column: str) -> pa.Array:
    array = rows[column.split(".")[0]].combine_chunks()
    return pc.struct_field(array, "y") if column == "x.y" else array


def bounds(values: pa.Array) -> tuple[Any, Any, int]:
    """As the original merges those of two row groups: both are 0.0 where something is not a number; texts that are
    longer than 4 KB together have none, and count as nulls."""
    half = len(values) // 2
    groups = [_of_row_group(part) for part in (values.slice(0, half), values.slice(half)) if len(part)]
    lows, highs = ([end for end in ends if end is not None] for ends in list(zip(*groups, strict=True))[:2])
    nulls = sum(group[2] for group in groups)
    return (min(lows), max(highs), nulls) if lows else (None, None, nulls)


def _of_row_group(values: pa.Array) -> tuple[Any, Any, int]:
    if any(isinstance(v, float) and math.isnan(v) for v in values.to_pylist()):
        return 0.0, 0.0, values.null_count
    ends = pc.min_max(values)
    if pa.types.is_string(values.type) and sum(len(end.as_py() or "") for end in ends.values()) > _MAX_STATISTICS:
        return None, None, len(values)
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
            return random.choice(
                ["", "😀", "\uff5e", "u" * 5_000, f"text {n}", f"text {n:03d}"], p=[0.05, 0.1, 0.1, 0.05, 0.3, 0.4]
            )
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


def simple(n: int, **values: Any) -> dict[str, Any]:
    return {"id": f"k{n}", "p": "a", **values}
