"""Conditions as SQL, as filters of scans, and as Python functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from tests.random_sequences.model import TableModel
from tests.random_sequences.rows import Row

_COMPARED = ("num", "seq", "qty", "price", "name", "tag", "id", "part", "sub", "odd", "key", "place")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ALL_ORDERS_AGREE = "\ud7ff"
"""Greater texts are in another order as UTF-8 than as UTF-16."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a value (``is null``: without one)."""

    column: str
    op: str
    value: Any = None

    @property
    def sql(self) -> str:
        """The condition as SQL."""
        if self.op == "is null":
            return f"`{self.column}` IS NULL"
        literal = self.value
        if isinstance(literal, str):
            text = literal.replace("\\", "\\\\").replace("'", "\\'")
            literal = f"'{text}'"
        elif isinstance(literal, float):
            literal = f"{literal!r}D"
        return f"`{self.column}` {self.op} {literal}"

    @property
    def filter(self) -> Any:
        """The condition as the argument of `HudiTable.scan`."""
        return self.sql if self.op == "is null" else [(self.column, self.op, self.value)]

    def holds(self, row: Row) -> bool:
        """Whether a row meets it."""
        value = row.get(self.column)
        if self.op == "is null":
            return value is None
        return value is not None and _OPERATORS[self.op](value, self.value)


def draw_condition(rng: Random, model: TableModel) -> Condition:
    """Draw a condition, mostly on a value that a record has."""
    return draw_condition_on(rng, model.schema, [stored.row for stored in model.records.values()])


def draw_condition_on(rng: Random, schema: pa.Schema, rows: Iterable[Row]) -> Condition:
    """Draw a condition on rows of these columns, mostly on a value that one of them has."""
    column = rng.choice([*_COMPARED, *schema.names[len(_COMPARED) :][-2:]])
    column = column if column in schema.names and _is_simple(schema, column) else "num"
    values = sorted({row[column] for row in rows if row.get(column) is not None})
    if not values or rng.random() < 0.1:
        return Condition(column, "is null")
    value = rng.choice(values)
    if isinstance(value, str) and value > _ALL_ORDERS_AGREE:
        return Condition(column, "=", value)
    orders = not isinstance(value, str) or not any(text > _ALL_ORDERS_AGREE for text in values)
    return Condition(column, rng.choice(("=", "=", *(_OPERATORS if orders else ("=",)))), value)


def _is_simple(schema: pa.Schema, column: str) -> bool:
    return str(schema.field(column).type) in ("string", "int32", "int64", "double")
