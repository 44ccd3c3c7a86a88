"""Results of Apache Hudi 1.2.0 for every payload class and both table types (recorded in ``data/answers.json``).

Each scenario is one record: a base row, two upserts, a delete by key and a third upsert, any of which may be
missing; upserts have one or two rows ``[ordering, a, b]``, or ``["x", ordering]`` for a flagged delete. Tables ``v9_…``
were written and read by 1.2.0, ``v8_…`` written by 1.0.2 and ``v6_…`` by 0.15.0 and read by 1.2.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

RECORDED = json.loads((Path(__file__).parent / "data" / "answers.json").read_text())
SCENARIOS: dict[str, list[Any]] = RECORDED["scenarios"]
STEPS = {"u1": 1, "u2": 2, "d": 3, "u3": 4}
UNAVAILABLE = "__debezium_unavailable_value"

ALL_STEPS = tuple(STEPS)
FAULTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "v6_mor_pg": ("1.2.0 shows the marker of unavailable values", ALL_STEPS),
    "v8_mor_pg": ("the same", ALL_STEPS),
    "v8_mor_event": ("of two deletes 1.2.0 keeps the first", ("d", "u2", "u3")),
}
"""Tables whose results pyhudi deliberately does not reproduce, at which steps, and why."""


def schema_of(kind: str) -> pa.Schema:
    """Return the columns of the tables of a payload class."""
    ordering = {
        "pg": [("_event_lsn", pa.int64())],
        "my": [("_event_bin_file", pa.string()), ("_event_pos", pa.int64()), ("_event_seq", pa.string())],
    }
    marker = {"dms": ("Op", pa.string()), "pg": ("_change_operation_type", pa.string())}
    marker["my"] = marker["pg"]
    return pa.schema(
        [
            ("k", pa.string()),
            *ordering.get(kind, [("o", pa.int32())]),
            ("a", pa.string()),
            ("b", pa.string()),
            marker.get(kind, ("_hoodie_is_deleted", pa.bool_())),
        ]
    )


def batch_of(kind: str, rows: list[tuple[str, Any]]) -> pa.RecordBatch:
    """Return the rows of a write."""
    schema = schema_of(kind)
    marks: dict[str, tuple[Any, Any]] = {"dms": ("D", "U"), "pg": ("d", "u"), "my": ("d", "u")}
    found = []
    for key, row in rows:
        gone = row[0] == "x"
        a, b = (None, None) if gone else row[1:]
        if kind == "pg" and not gone:
            a, b = UNAVAILABLE if a is None else a, UNAVAILABLE if b is None else b
        values = {"k": key, "_event_bin_file": "bin.000001", "a": a, "b": b}
        values |= dict.fromkeys(("o", "_event_lsn", "_event_pos"), row[1] if gone else row[0])
        values["_event_seq"] = f"000001.{values['_event_pos']}"
        values |= dict.fromkeys(schema.names[-1:], marks.get(kind, (True, False))[0 if gone else 1])
        found.append({name: values[name] for name in schema.names})
    return pa.RecordBatch.from_pylist(found, schema)


def several(rows: Any) -> list[Any]:
    """Return the rows of a step, which may be a single row."""
    return rows if isinstance(rows[0], list) else [rows]
