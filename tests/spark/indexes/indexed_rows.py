"""Rows and write options of tables with a record index or a secondary index."""

from __future__ import annotations

from typing import Any

from tests.spark.model import Row, by_event_time

GLOBAL = {
    "hoodie__metadata__record__index__enable": True,
    "hoodie__metadata__record__index__min__filegroup__count": 3,
    "hoodie__record__index__update__partition__path": True,
}
VALUES = ("red", "green$", "bl\\ue", None)


def batch(start: int, stop: int, ts: int, shift: int = 0) -> list[Row]:
    """Return rows of two partitions whose last column runs through :data:`VALUES`, beginning at ``shift``."""
    return [(f"k{i:03d}", f"p{i % 2}", ts, VALUES[(i + shift) % 4]) for i in range(start, stop)]  # type: ignore[misc]


def record_indexed(operation: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    """Return the options of a write that uses a global record index, unless ``more`` says otherwise."""
    known = {"hoodie__index__type": "RECORD_INDEX", **GLOBAL}
    return by_event_time(operation, table_type, version, **{**known, **more})
