"""Sequences of writes for which Apache Hudi and pyhudi, each on its own table, must produce the same result."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

KEYGEN = "org.apache.hudi.keygen."
WRITE = "hoodie.datasource.write."

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("v", pa.int32()), ("ts", pa.int32()), ("note", pa.string())]
)


@dataclass(frozen=True)
class Write:
    """One call of a writer."""

    operation: str
    rows: pa.Table
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"


@dataclass(frozen=True)
class Case:
    """A sequence of writes. ``compared`` are the columns that must be equal, all if None. Tables that Apache Hudi
    writes but ``they_cannot_read`` are compared by pyhudi's reader. ``counts``: statistics of commits must be equal,
    too. An option with the value None is not passed."""

    name: str
    writes: Sequence[Write]
    options: Mapping[str, str | None] = field(default_factory=dict)
    compared: Sequence[str] | None = None
    they_cannot_read: bool = False
    counts: bool = True

    def __str__(self) -> str:
        return self.name


BASE = {
    "hoodie.table.name": "outcome",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "part",
    "hoodie.metadata.enable": "false",
}
EVENT = {WRITE + "precombine.field": "ts"}


def rows(*given: Sequence[Any], schema: pa.Schema = SCHEMA, **more: tuple[pa.DataType, Sequence[Any]]) -> pa.Table:
    """A table of rows (short ones are filled with nulls) with more columns at the end: name=(type, values)."""
    columns = [[row[i] if i < len(row) else None for row in given] for i in range(len(schema))]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    for name, (kind, values) in more.items():
        table = table.append_column(name, pa.array(values, kind))
    return table


START = rows(("a", "x", 1, 100), ("b", "x", 1, 100), ("c", "y", 1, 100), ("d", "y", 1, 100))
FLAG = pa.bool_()


def _flagged(table: pa.Table, flags: Sequence[bool | None]) -> pa.Table:
    return table.append_column("_hoodie_is_deleted", pa.array(flags, FLAG))


NEWER_OLDER_EQUAL = rows(("a", "x", 2, 200, "newer"), ("b", "x", 2, 50, "older"), ("c", "y", 2, 100, "equal"))
TWICE = rows(
    ("a", "x", 5, 300), ("a", "x", 7, 500), ("a", "x", 6, 400),  # the middle one is the newest
    ("b", "x", 1, 300), ("b", "x", 2, 300),  # a tie
    ("n", "z", 1, 7), ("n", "z", 2, 6),  # a new key
)  # fmt: skip
DELETES = _flagged(
    rows(
        ("a", "x", 2, 200),
        ("b", "x", 2, 50),
        ("c", "y", 2, 100),
        ("d", "y", 9, 300),
        ("n", "z", 1, 1),
        ("o", "z", 1, 1),
    ),
    [True, True, True, False, True, None],
)
FLAGGED_START = _flagged(START, [False, False, None, False])
ORDERINGS = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("o1", pa.int32()), ("o2", pa.string()), ("v", pa.int32())]
)
MANY_KEYS = pa.schema(
    [
        *(
            ("id", pa.string()),
            ("i", pa.int32()),
            ("l", pa.int64()),
            ("d", pa.date32()),
            ("t", pa.timestamp("us", "UTC")),
        ),
        *(
            ("n", pa.decimal128(10, 2)),
            ("f", pa.float64()),
            ("b", pa.bool_()),
            ("part", pa.string()),
            ("ts", pa.int32()),
        ),
    ]
)
_MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC)
MANY = rows(
    ("a:x,b", 1, 2**40, dt.date(2024, 1, 2), _MOMENT, Decimal("1.50"), 1.5, True, "p", 1),
    ("é", -5, -1, dt.date(1969, 12, 31), _MOMENT - dt.timedelta(days=30_000), Decimal("-0.05"), 1e-7, False, "q", 1),
    ("z", 0, 0, dt.date(1970, 1, 1), _MOMENT.replace(microsecond=0), Decimal("0.00"), 1e20, True, "", 1),
    ("", None, None, None, None, None, None, None, None, 1),
    ("w", 7, 7, dt.date(1900, 1, 1), _MOMENT, Decimal("12345678.90"), 123456789.125, False, "r", 1),
    schema=MANY_KEYS,
)
_KEYS = {WRITE + "recordkey.field": "id,i,l,d,t,n,f,b"}
TIMES = pa.schema(
    [
        *(("id", pa.string()), ("s", pa.int64()), ("ms", pa.int64()), ("text", pa.string()), ("d", pa.date32())),
        *(("t", pa.timestamp("us", "UTC")), ("day", pa.int32()), ("region", pa.string()), ("feast", pa.string())),
    ]
)
SOME_TIMES = rows(
    ("a", 1_700_000_000, 1_700_000_000_000, "2024-03-05 23:30:00", dt.date(2024, 3, 5), _MOMENT, 19_000, "eu", "29/02"),
    ("b", 0, 999, "1969-12-31 00:00:01", dt.date(1969, 12, 31), _MOMENT - dt.timedelta(hours=4), 0, "us", "25/12"),
    ("c", 1_709_251_199, 1_709_251_199_999, "2024-02-29 12:00:00", dt.date(2024, 2, 29), _MOMENT, 1, "eu", "01/01"),
    schema=TIMES,
)


def _by_time(name: str, column: str, kind: str, output: str, **more: str) -> Case:
    timebased = {
        "timestamp.type": kind,
        "output.dateformat": output,
        **{k.replace("_", "."): v for k, v in more.items()},
    }
    options = {
        WRITE + "partitionpath.field": column,
        WRITE + "keygenerator.class": KEYGEN + "TimestampBasedKeyGenerator",
        **{f"hoodie.keygen.timebased.{key}": value for key, value in timebased.items()},
    }
    return Case(f"timestamp-keygen-{name}", [Write("insert", SOME_TIMES)], options, ["id"], name == "timestamp")


def _merging(name: str, options: Mapping[str, str]) -> list[Case]:
    """Return the cases of one merge mode, in which existing rows are updated."""
    base = Write("bulk_insert", START)
    return [
        Case(f"{name}-newer-older-equal", [base, Write("upsert", NEWER_OLDER_EQUAL)], options),
        Case(f"{name}-twice-in-the-batch", [base, Write("upsert", TWICE)], options),
        Case(f"{name}-twice-in-an-insert", [base, Write("insert", TWICE)], options),
        Case(
            f"{name}-twice-in-an-insert-combined",
            [base, Write("insert", TWICE, {"hoodie.combine.before.insert": "true"})],
            options,
        ),
        # Apache Hudi counts a flagged row whose key does not exist as a delete, pyhudi does not
        Case(
            f"{name}-flagged-deletes",
            [Write("bulk_insert", FLAGGED_START), Write("upsert", DELETES)],
            options,
            counts=False,
        ),
        Case(
            f"{name}-deleted-and-back",
            [base, Write("delete", START.slice(0, 2)), Write("upsert", rows(("a", "x", 3, 150), ("b", "x", 3, 60)))],
            options,
        ),
    ]


def _global(index: str, update: str) -> Case:
    moved = rows(("a", "y", 2, 200, "moved"), ("c", "y", 2, 200, "stays"), ("n", "z", 1, 1, "new"))
    options = {
        **EVENT,
        "hoodie.index.type": index,
        f"hoodie.{'bloom' if 'BLOOM' in index else 'simple'}.index.update.partition.path": update,
    }
    writes = [Write("bulk_insert", START), Write("upsert", moved)]
    return Case(f"{index.lower()}-update-path-{update}", writes, options)


def _v(kind: pa.DataType, *values: Any) -> pa.Table:
    """Return two updates and one new row whose column ``v`` has another type."""
    table = rows(("a", "x", None, 200), ("c", "y", None, 200), ("n", "z", None, 200))
    return table.set_column(2, "v", pa.array(values, kind))


EVOLUTION = [
    Case(
        "evolution-added-column",
        [
            Write("bulk_insert", START),
            Write("upsert", rows(("a", "x", 2, 200), ("n", "z", 2, 200), extra=(pa.int64(), [7, 8]))),
        ],
        EVENT,
    ),
    Case(
        "evolution-missing-column-refused",
        [Write("bulk_insert", START), Write("upsert", NEWER_OLDER_EQUAL.drop_columns(["v"]))],
        EVENT,
    ),
    Case(
        "evolution-missing-column-nulls",
        [
            Write("bulk_insert", START),
            Write(
                "upsert", NEWER_OLDER_EQUAL.drop_columns(["v"]), {"hoodie.write.set.null.for.missing.columns": "true"}
            ),
        ],
        EVENT,
    ),
    Case("evolution-int-to-long", [Write("bulk_insert", START), Write("upsert", _v(pa.int64(), 2**40, 2, 3))], EVENT),
    Case("evolution-int-to-double", [Write("bulk_insert", START), Write("upsert", _v(pa.float64(), 0.5, 2, 3))], EVENT),
    Case(
        "evolution-int-to-string",
        [Write("bulk_insert", START), Write("upsert", _v(pa.string(), "x", "2", None))],
        EVENT,
    ),
    Case(
        "evolution-narrower-int",
        [Write("bulk_insert", _v(pa.int64(), 1, 2**40, 3)), Write("upsert", _v(pa.int32(), 4, 5, 6))],
        EVENT,
    ),
    Case(
        "evolution-int-into-string",
        [Write("bulk_insert", _v(pa.string(), "1", "2", "3")), Write("upsert", _v(pa.int32(), 4, 5, 6))],
        EVENT,
    ),
    Case(
        "evolution-columns-in-another-order",
        [Write("bulk_insert", START), Write("upsert", NEWER_OLDER_EQUAL.select(["note", "ts", "v", "part", "id"]))],
        EVENT,
    ),
]

CASES = [
    *_merging("event-time", EVENT),
    *_merging("commit-time", {}),
    Case(
        "custom-delete-marker",
        [
            Write("bulk_insert", START),
            Write(
                "upsert",
                rows(("a", "x", 2, 200, "D"), ("b", "x", 2, 50, "D"), ("c", "y", 2, 200, "d"), ("n", "z", 1, 1, "D")),
            ),
        ],
        {
            **EVENT,
            "hoodie.payload.delete.field": "note",
            "hoodie.payload.delete.marker": "D",
        },
        counts=False,
    ),
    Case(
        "two-ordering-fields",
        [
            Write("bulk_insert", rows(*((k, "x", 5, "m", 0) for k in "abcdef"), schema=ORDERINGS)),
            Write(
                "upsert",
                rows(
                    *(("a", "x", 5, "n", 1), ("b", "x", 5, "l", 1), ("c", "x", 4, "z", 1), ("d", "x", 6, "a", 1)),
                    *(("e", "x", 5, "m", 1), ("f", "x", 6, "a", 2), ("f", "x", 6, "b", 3), ("f", "x", 5, "z", 4)),
                    schema=ORDERINGS,
                ),
            ),
        ],
        {WRITE + "precombine.field": "o1,o2"},
    ),
    *(_global(index, update) for index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM") for update in ("true", "false")),
    *EVOLUTION,
    Case(
        "null-and-empty-partition",
        [Write("insert", rows(("a", None, 1, 1), ("b", "", 1, 1), ("c", "x", 1, 1)))],
        {},
        ["id", "v"],
    ),
    Case("null-key-refused", [Write("insert", rows(("a", "x", 1, 1), (None, "x", 1, 1)))], {}),
    Case("empty-key-refused", [Write("insert", rows(("a", "x", 1, 1), ("", "x", 1, 1)))], {}),
    Case("missing-key-field-refused", [Write("insert", START.drop_columns(["id"]))], {}),
    Case(
        "two-keys-all-null-refused", [Write("insert", rows((None, "x", None, 1)))], {WRITE + "recordkey.field": "id,v"}
    ),
    Case("many-key-types", [Write("insert", MANY)], _KEYS),
    Case(
        "many-key-types-bulk",
        [Write("bulk_insert", MANY)],
        {**_KEYS, WRITE + "keygenerator.consistent.logical.timestamp.enabled": "true"},
    ),
    Case("date-partition", [Write("insert", MANY.slice(0, 3))], {WRITE + "partitionpath.field": "d"}, ["id"]),
    Case("timestamp-partition", [Write("insert", MANY.slice(0, 3))], {WRITE + "partitionpath.field": "t"}, ["id"]),
    Case(
        "boolean-and-decimal-partitions",
        [Write("insert", MANY.slice(0, 3))],
        {WRITE + "partitionpath.field": "b,n", WRITE + "hive_style_partitioning": "true"},
        ["id"],
    ),
    _by_time("seconds", "s", "UNIX_TIMESTAMP", "yyyy/MM/dd/HH", output_timezone="UTC"),
    _by_time("milliseconds-zone", "ms", "EPOCHMILLISECONDS", "yyyyMMdd", timezone="GMT+8:00"),
    _by_time("scalar-days", "day", "SCALAR", "yyyy-MM-dd", timestamp_scalar_time_unit="DAYS"),
    _by_time(
        "text",
        "text",
        "DATE_STRING",
        "yyyy-MM",
        input_dateformat="yyyy-MM-dd HH:mm:ss",
        output_timezone="America/New_York",
    ),
    _by_time(
        "text-without-year", "feast", "DATE_STRING", "yyyy-MM-dd", input_dateformat="dd/MM", output_timezone="UTC"
    ),
    _by_time("quote", "ms", "EPOCHMILLISECONDS", "HH 'o''clock'", timezone="UTC+8"),  # which is UTC to Java
    _by_time("date", "d", "SCALAR", "yyyy/MM/dd", timestamp_scalar_time_unit="DAYS"),
    _by_time("timestamp", "t", "EPOCHMILLISECONDS", "yyyy-MM-dd'T'HH", output_timezone="UTC"),
    Case(
        "custom-keygen-with-time",
        [Write("insert", SOME_TIMES)],
        {
            WRITE + "partitionpath.field": "region:simple,s:timestamp",
            WRITE + "keygenerator.class": KEYGEN + "CustomKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy-MM",
        },
        ["id"],
        they_cannot_read=True,
    ),
    Case(
        "virtual-keys",
        [Write("bulk_insert", START), Write("upsert", NEWER_OLDER_EQUAL)],
        {**EVENT, "hoodie.populate.meta.fields": "false"},
        ["id", "part", "v", "ts"],
    ),
    Case(
        "dropped-partition-columns",
        [Write("insert", START), Write("upsert", NEWER_OLDER_EQUAL)],
        {**EVENT, WRITE + "drop.partition.columns": "true"},
    ),
    Case(
        "insert-overwrite-touches-its-partitions",
        [Write("bulk_insert", START), Write("insert_overwrite", rows(("q", "x", 9, 1), ("r", "w", 9, 1)))],
        EVENT,
    ),
    Case(
        "insert-overwrite-table",
        [Write("bulk_insert", START), Write("insert_overwrite_table", rows(("q", "x", 9, 1)))],
        EVENT,
    ),
    Case(
        "insert-overwrite-by-save-mode",
        [Write("bulk_insert", START), Write("insert_overwrite_table", rows(("q", "x", 9, 1)), mode="overwrite")],
        EVENT,
    ),
    Case(
        "delete-by-keys-alone",
        [Write("bulk_insert", START), Write("delete", START.slice(1, 2).select(["id", "part"]))],
        {},
    ),
    Case("delete-of-what-is-not-there", [Write("bulk_insert", START), Write("delete", rows(("z", "x", 1, 1)))], EVENT),
    Case(
        "delete-partitions-by-glob",
        [
            Write("bulk_insert", START),
            Write("delete_partition", START.slice(0, 0), {WRITE + "partitions.to.delete": "x*"}),
        ],
        EVENT,
    ),
    Case("empty-upsert", [Write("bulk_insert", START), Write("upsert", START.slice(0, 0))], EVENT),
    Case(
        "refuse-an-existing-table",
        [Write("bulk_insert", START), Write("bulk_insert", TWICE, mode="errorifexists")],
        EVENT,
    ),
    Case(
        "replace-an-existing-table",
        [Write("bulk_insert", START), Write("bulk_insert", TWICE, mode="overwrite")],
        EVENT,
        # pyhudi replaces the old table by one atomic replacecommit, Apache Hudi deletes it and creates a new one
        counts=False,
    ),
    Case(
        "another-table-name-refused",
        [Write("bulk_insert", START), Write("upsert", TWICE, {"hoodie.table.name": "other"})],
        EVENT,
    ),
    Case(
        "another-key-refused",
        [Write("bulk_insert", START), Write("upsert", TWICE, {WRITE + "recordkey.field": "v"})],
        EVENT,
    ),
    Case(
        "extra-metadata",
        [Write("bulk_insert", START, {WRITE + "commitmeta.key.prefix": "_own.", "_own.offset": "42"})],
        EVENT,
    ),
    Case(
        "duplicates-dropped",
        [Write("bulk_insert", START), Write("insert", TWICE, {WRITE + "insert.drop.duplicates": "true"})],
        EVENT,
    ),
    Case(
        "duplicates-refused",
        [Write("bulk_insert", START), Write("insert", TWICE, {"hoodie.datasource.insert.dup.policy": "fail"})],
        EVENT,
    ),
    Case("upsert-makes-the-table", [Write("upsert", TWICE)], EVENT),
    Case("no-record-key", [Write("insert", START)], {WRITE + "recordkey.field": None, **EVENT}, list(SCHEMA.names)),
]
