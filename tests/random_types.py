"""Rows of columns of random types, with values at the edges of these, and a table of them as a test expects it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

EPOCH = dt.date(1970, 1, 1)
DAYS = [
    *((day - EPOCH).days for day in (dt.date.min, dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1900, 1, 1))),
    *(-1, 0, 19_782, (dt.date.max - EPOCH).days),
]
"""Dates as days since 1970: of the first and the last year, and on both sides of 1582-10-15, when calendars changed."""
FAR_DAYS = [*DAYS, 3_000_000]
"""The same, and one beyond the year 9999."""
_MICROS_OF_DAY = 86_400_000_000


def _micros(days: Sequence[int]) -> list[int]:
    return [1, -1, *(day * _MICROS_OF_DAY + 45_296_789_012 for day in days)]


_INFINITE = (float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    " ",
    "null",
    "\x00\x01\x1f\x7f\u0085\u2028",
    'q"\\/\n\r\t',
    "é",
    "e\u0301",
    "日本",
    "\ufffd\uffff",
    "😀\U0010ffff",
    "x" * 5_000,
)
_DECIMALS = ((1, 0), (5, 2), (9, 9), (10, 0), (18, 6), (19, 4), (38, 0), (38, 10), (38, 38))


@dataclass(frozen=True)
class Column:
    """A column with the values at the edges of its type, as `pyarrow.array` takes them."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Choices:
    """What rows may have. ``local_times``: timestamps without a zone. ``null_items``: nulls in lists.
    ``lists_in_lists``: lists inside of the elements of lists. ``same_fields``: fields of the same names in structs of
    different types. ``far``: years beyond 9999."""

    local_times: bool = True
    null_items: bool = True
    lists_in_lists: bool = True
    same_fields: bool = True
    far: bool = True

    @property
    def days(self) -> list[int]:
        """Dates as days since 1970."""
        return FAR_DAYS if self.far else DAYS


LEAVES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary()),
    *(pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")),
    *(pa.decimal128(*form) for form in _DECIMALS),
)
NAMES = ("Upper", "mixedCase", "ünï", "_x1", "select", "日本", "order", "Ω", "camelCase_2", "a1")
"""Names that columns may have: those of SQL's key words, with capitals, in other scripts."""
WIDENED = {
    "i": (pa.int32(), pa.int64()),
    "f": (pa.float32(), pa.float64()),
    "dec": (pa.decimal128(9, 2), pa.decimal128(14, 4)),
}
"""Columns whose type becomes wider: before, and after."""
COMMIT = "_commit"
"""Name under which a test may keep the number of the commit of a row, until the row is written again."""
KEYS = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


def draw_columns(rng: Random, choices: Choices, leaves: int, nested: int) -> list[Column]:
    """Draw columns: pairs of the same type, ``<name>`` and ``<name>_``, of some simple and some nested types."""
    simple = [kind for kind in LEAVES if choices.local_times or kind != pa.timestamp("us")]
    kinds = rng.sample(simple, min(leaves, len(simple)))
    while len(kinds) < leaves + nested:
        kind = _draw_nested(rng, simple, 2, choices)
        if choices.lists_in_lists or not _has_list_in_list(kind):
            kinds.append(kind)
    names = [*rng.sample(NAMES, len(NAMES)), *(f"c{number}" for number in range(len(kinds)))]
    pairs = [(Column(name, kind), Column(f"{name}_", kind)) for name, kind in zip(names, kinds, strict=False)]
    return [column for pair in pairs for column in pair]


def _draw_nested(rng: Random, simple: Sequence[pa.DataType], depth: int, choices: Choices) -> pa.DataType:
    if not depth:
        return rng.choice(simple)
    shape = rng.choice(("struct", "list", "map"))
    if shape == "struct":
        suffix = "" if choices.same_fields else str(rng.randrange(10**6))
        kinds = {name: _draw_nested(rng, simple, rng.choice((0, depth - 1)), choices) for name in ("x", "Y", "z")}
        return pa.struct([(f"{name}{suffix}", kind) for name, kind in kinds.items()])
    inner = _draw_nested(rng, simple, depth - 1, choices)
    return pa.list_(inner) if shape == "list" else pa.map_(pa.string(), inner)


def _has_list_in_list(kind: pa.DataType, inside: bool = False) -> bool:
    is_list = pa.types.is_list(kind)
    if is_list and inside:
        return True
    return any(_has_list_in_list(kind.field(i).type, inside or is_list) for i in range(kind.num_fields))


def draw_value(rng: Random, kind: pa.DataType, choices: Choices, *, nullable: bool = True) -> Any:
    """Draw a value as `pyarrow.array` takes it: dates and timestamps are numbers."""
    t = pa.types
    if nullable and rng.random() < 0.15:
        return None
    if t.is_struct(kind):
        return {inner.name: draw_value(rng, inner.type, choices) for inner in kind}
    if t.is_list(kind):
        return [draw_value(rng, kind.value_type, choices, nullable=choices.null_items) for _ in range(rng.randrange(4))]
    if t.is_map(kind):
        return [(key, draw_value(rng, kind.item_type, choices)) for key in rng.sample(TEXTS[1:-1], rng.randrange(3))]
    return rng.choice(edges(kind, choices))


def edges(kind: pa.DataType, choices: Choices) -> list[Any]:
    """Return values at the edges of a simple type."""
    t = pa.types
    if t.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return [-most, most - 1, 0, -1, 7]
    if t.is_float32(kind):
        return [*_INFINITE, *map(float, np.float32([0.0, -0.0, 0.1, 1e10, 16_777_216, 3.4028235e38, -2.5]))]
    if t.is_float64(kind):
        return [*_INFINITE, 0.0, -0.0, 0.1, 1e10, 5e-324, 1.7976931348623157e308, -2.5, 123_456_789.125]
    if t.is_boolean(kind):
        return [False, True]
    if t.is_string(kind):
        return list(TEXTS)
    if t.is_binary(kind):
        return [b"", b"\x00", bytes(range(256)), b"\xff\xfe", "é".encode(), b"x" * 3_000]
    if t.is_decimal(kind):
        numbers = [0, 1, -1, 10**kind.precision - 1, 1 - 10**kind.precision]
        return [Decimal((number < 0, tuple(map(int, str(abs(number)))), -kind.scale)) for number in numbers]
    return choices.days if t.is_date(kind) else _micros(choices.days)


@dataclass
class TypedTable:
    """Rows that a table is expected to have, by key. ``columns`` are those that are not in `KEYS`."""

    rng: Random
    choices: Choices
    columns: list[Column]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    time: int = 0

    @classmethod
    def draw(cls, seed: int, choices: Choices, leaves: int = 6, nested: int = 3) -> TypedTable:
        """Draw the columns of a table."""
        rng = Random(seed)
        widened = [Column(name, before) for name, (before, _) in WIDENED.items()]
        return cls(rng, choices, [*draw_columns(rng, choices, leaves, nested), *widened])

    @property
    def schema(self) -> pa.Schema:
        """Types in which rows are written."""
        return pa.schema([*KEYS, *((column.name, column.type) for column in self.columns)])

    def batch(self, numbers: Sequence[int]) -> pa.Table:
        """Draw rows with these numbers, later than all before, without storing them."""
        self.time += 1
        rows = [
            {"id": f"k{number:03d}", "part": f"p{number % 2}", "ts": self.time}
            | {column.name: draw_value(self.rng, column.type, self.choices) for column in self.columns}
            for number in numbers
        ]
        return pa.Table.from_pylist(rows, self.schema)

    def upsert(self, numbers: Sequence[int]) -> pa.Table:
        """Draw rows, which replace those of their keys."""
        batch = self.batch(numbers)
        for row in raw_rows(batch):
            self.rows[row["id"]] = row
        return batch

    def delete(self, numbers: Sequence[int]) -> pa.Table:
        """Return rows whose keys are deleted."""
        batch = self.batch(numbers)
        for key in batch["id"].to_pylist():
            self.rows.pop(key, None)
        return batch

    def assign(self, numbers: Sequence[int]) -> tuple[dict[str, str], str]:
        """Return the columns of each pair, of which the first gets the value of the second, and the condition of the
        rows."""
        pairs = {c.name.removesuffix("_"): c.name for c in self.columns if c.name.endswith("_")}
        keys = [f"k{number:03d}" for number in numbers]
        for key in keys:
            if key in self.rows:
                row = {name: value for name, value in self.rows[key].items() if name != COMMIT}
                self.rows[key] = row | {name: row[other] for name, other in pairs.items()}
        listed = ", ".join(f"'{key}'" for key in keys)
        return pairs, f"id IN ({listed})"

    def widen(self) -> None:
        """Go on with wider types and a new column."""
        wider = {name: after for name, (_, after) in WIDENED.items()}
        self.columns = [replace(c, type=wider.get(c.name, c.type)) for c in self.columns]
        self.columns.append(Column("added", pa.timestamp("us", "UTC")))

    def expected(self) -> list[str]:
        """Return the rows as `comparable`."""
        table = pa.Table.from_pylist(
            [{name: row.get(name) for name in self.schema.names} for row in self.rows.values()], self.schema
        )
        return comparable(table, self.schema.names)


def raw_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows of values as `pyarrow.array` takes them; floats with the text that they have, as doubles."""
    columns = [raw_values(column.combine_chunks()) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def raw_values(array: pa.Array) -> list[Any]:
    """Return the values of a column: dates and timestamps as numbers."""
    t, kind = pa.types, array.type
    if t.is_struct(kind):
        children = zip(*map(raw_values, array.flatten()), strict=True)
        names = [inner.name for inner in kind]
        return [
            dict(zip(names, values, strict=True)) if valid else None
            for values, valid in zip(children, array.is_valid().to_pylist(), strict=True)
        ]
    if t.is_map(kind):
        pairs = list(zip(raw_values(array.keys), raw_values(array.items), strict=True))
        return _slices(array, pairs)
    if t.is_list(kind):
        return _slices(array, raw_values(array.values))
    if t.is_date(kind):
        return array.cast(pa.int32()).to_pylist()
    if t.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
    if t.is_float32(kind):
        return [None if value is None else float(str(np.float32(value))) for value in array.to_pylist()]
    return array.to_pylist()


def _slices(array: pa.Array, inside: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    return [
        inside[start:stop] if valid else None
        for start, stop, valid in zip(offsets[:-1], offsets[1:], array.is_valid().to_pylist(), strict=True)
    ]


def comparable(table: pa.Table, columns: Sequence[str]) -> list[str]:
    """Return rows as sorted texts that are equal if the values are: -0.0 is not 0.0, and NaN is NaN."""
    return sorted(json.dumps([_plain(row[name]) for name in columns]) for row in raw_rows(table.select(columns)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        inside = [_plain(inner) for inner in value]
        return sorted(inside, key=json.dumps) if value and isinstance(value[0], tuple) else inside
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return repr(value) if isinstance(value, float) else value


def assert_rows(found: pa.Table, table: TypedTable, what: str) -> None:
    """Assert that a query has found the rows of a table; the message has the first values that differ."""
    names = table.schema.names
    missing = [name for name in names if name not in found.column_names]
    assert not missing, f"{what}: columns {missing} are missing"
    actual, expected = comparable(found, names), table.expected()
    if actual == expected:
        return
    ours, theirs = ({row[0]: row for row in map(json.loads, rows)} for rows in (actual, expected))
    keys = (
        f"{len(actual)} rows, expected {len(expected)}; surplus {ours.keys() - theirs}, missing {theirs.keys() - ours}"
    )
    differences = [
        f"\n  {key}, {column} ({kind}): {a!r}, expected {b!r}"[:300]
        for key in sorted(ours.keys() & theirs)
        for column, kind, a, b in zip(names, table.schema.types, ours[key], theirs[key], strict=True)
        if a != b
    ]
    raise AssertionError(f"{what}: {keys}" + "".join(differences[:12]))


def frame_of(spark: SparkSession, rows: pa.Table, folder: Path) -> DataFrame:
    """Return rows as a DataFrame, without Spark's reader of files, which refuses old dates."""
    file = str(folder / f"rows-{len(list(folder.glob('rows-*')))}.arrow")
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)

    def read(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from pa.ipc.open_file(file).read_all().to_batches()

    return spark.range(0, 1, 1, 1).mapInArrow(read, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))
