"""Rows of random tables: dicts with the columns of the tests with Apache Hudi, and what decides of their versions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.interop.harness import scenarios
from tests.random_sequences.table_kinds import ODD_PLACES, PLACES, TableKind, odd_key

Row = dict[str, Any]
NUMBERS = 40
"""Keys are made of numbers below this one."""
PARTITION_COLUMNS = ("part", "sub", "odd", "day", "ms", "place")
OPTIONAL = ("name", "qty", "price")
"""Columns that may be null."""
IS_DELETED = "_hoodie_is_deleted"


def schema_of(kind: TableKind) -> pa.Schema:
    """Return the columns of a new table: ``tag`` is different in every version of every record, ``seq`` orders."""
    found = scenarios.rows([], 0, wide=kind.wide).schema
    found = found.append(pa.field("key", pa.string())).append(pa.field("place", pa.string()))
    found = found.append(pa.field("tag", pa.string()))
    return found.append(pa.field(IS_DELETED, pa.bool_())) if kind.flagged else found


def new_row(kind: TableKind, number: int, place: int, seq: int, tag: str, round_: int) -> Row:
    """Return a row without nulls in the columns that may have some. Its key is ``number``, its partition ``place``."""
    row: Row = scenarios.rows([number], round_, wide=kind.wide).to_pylist()[0]
    there = scenarios.rows([place], 0, wide=False).to_pylist()[0]
    row |= {name: there[name] for name in PARTITION_COLUMNS if name in there}
    row |= {"key": odd_key(number), "place": ODD_PLACES[place % PLACES], "seq": seq, "tag": tag}
    row["name"] = row["name"] or f"n{number}"
    return row | ({IS_DELETED: False} if kind.flagged else {})
