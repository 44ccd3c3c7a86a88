"""Conditions that a SQL comparison of a column with literals implies, and their combinations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pyhudi.arrow.arrays import is_text
from pyhudi.read.filters.sql_operands import Column, Literal, Operand, as_column_type, is_whole
from pyhudi.read.filters.terms import Conjunctions, Term

ANYTHING: Conjunctions = ((),)
_MAX_CONJUNCTIONS = 64
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
_MAX_SCALE = 18
_LAST_BEFORE_SURROGATES = 0xD7FF


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """Conditions implied for rows for which a predicate is true, and for those for which it is false; ``exact_if_true``
    and ``exact_if_false``: the condition is equivalent. ``other_type`` says which column it compares with a literal of
    another type, if any."""

    if_true: Conjunctions = ANYTHING
    if_false: Conjunctions = ANYTHING
    exact_if_true: bool = False
    exact_if_false: bool = False
    other_type: str = ""

    def __and__(self, other: SqlCondition) -> SqlCondition:
        return SqlCondition(
            _conjunction(self.if_true, other.if_true),
            _disjunction(self.if_false, other.if_false),
            self.exact_if_true and other.exact_if_true and len(self.if_true) * len(other.if_true) <= _MAX_CONJUNCTIONS,
            self.exact_if_false
            and other.exact_if_false
            and len(self.if_false) + len(other.if_false) <= _MAX_CONJUNCTIONS,
            self.other_type or other.other_type,
        )

    def __or__(self, other: SqlCondition) -> SqlCondition:
        return ~(~self & ~other)

    def __invert__(self) -> SqlCondition:
        return SqlCondition(self.if_false, self.if_true, self.exact_if_false, self.exact_if_true, self.other_type)


UNKNOWN = SqlCondition()


def _conjunction(a: Conjunctions, b: Conjunctions) -> Conjunctions:
    if len(a) * len(b) > _MAX_CONJUNCTIONS:
        # Each of the two must be true as well.
        return a if len(a) <= len(b) else b
    return tuple(tuple(dict.fromkeys((*x, *y))) for x in a for y in b)


def _disjunction(a: Conjunctions, b: Conjunctions) -> Conjunctions:
    if () in a or () in b or len(a) + len(b) > _MAX_CONJUNCTIONS:
        return ANYTHING
    return a + b


def compare(left: Operand, op: str, right: Operand) -> SqlCondition:
    """Return the condition ``left op right``."""
    if isinstance(left, Literal) and isinstance(right, Column):
        left, right, op = right, left, _TURNED.get(op, op)
    if not isinstance(left, Column) or not isinstance(right, Literal):
        return UNKNOWN
    if right.value is None:
        return _leaf(Term(left.name, "=", None)) if op == "<=>" else UNKNOWN
    if isinstance(right.value, Decimal) and pa.types.is_integer(left.data_type) and not is_whole(right.value):
        return _compare_with_fraction(left, op, right.value)
    value = as_column_type(right.value, left.data_type)
    if value is None:
        return _of_other_type(left, right.value)
    if op == "<=>":
        # Null is not equal, either.
        return SqlCondition(((Term(left.name, "=", value),),), exact_if_true=_is_same(right.value, left.data_type))
    whole = _is_same(right.value, left.data_type)
    return replace(_leaf(Term(left.name, op, value)), exact_if_true=whole, exact_if_false=whole)


def is_in(left: Operand, values: Sequence[Operand]) -> SqlCondition:
    """Return the condition ``left IN (values)``."""
    if not isinstance(left, Column) or not all(isinstance(value, Literal) for value in values):
        return UNKNOWN
    literals = [value.value for value in values if isinstance(value, Literal) and value.value is not None]
    converted = [as_column_type(value, left.data_type) for value in literals]
    if None in converted:
        return _of_other_type(left, literals[converted.index(None)])
    if not literals:
        return UNKNOWN
    leaf = _leaf(Term(left.name, "in", tuple(converted)))
    same_types = all(_is_same(value, left.data_type) for value in literals)
    # With null in the list, a value that is not in the list does not satisfy NOT IN either.
    return replace(leaf, exact_if_true=same_types, exact_if_false=same_types and len(literals) == len(values))


def is_null(left: Operand) -> SqlCondition:
    """Return the condition ``left IS NULL``."""
    return _leaf(Term(left.name, "=", None)) if isinstance(left, Column) else UNKNOWN


def like(left: Operand, pattern: Operand) -> SqlCondition:
    """Return the condition ``left LIKE pattern``."""
    if not isinstance(left, Column) or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return UNKNOWN
    if not is_text(left.data_type):
        return UNKNOWN
    text = pattern.value
    wild = [at for at in (text.find("%"), text.find("_")) if at >= 0]
    if not wild:
        return _leaf(Term(left.name, "=", text))
    prefix = text[: min(wild)]
    if not prefix:
        return UNKNOWN
    end = _after(prefix)
    terms = [Term(left.name, ">=", prefix)]
    if end is not None:
        terms.append(Term(left.name, "<", end))
    return SqlCondition((tuple(terms),), exact_if_true=end is not None and text == f"{prefix}%")


def _of_other_type(column: Column, value: Any) -> SqlCondition:
    """Return the condition of a comparison that depends on a cast."""
    shown = repr(value) if isinstance(value, str) else str(value).upper() if isinstance(value, bool) else str(value)
    return SqlCondition(other_type=f"column {column.name!r} has type {column.data_type}, and {shown} another one")


def _is_same(value: Any, data_type: pa.DataType) -> bool:
    """Return True if a number is unchanged in the type of a column: Spark converts integers to float32."""
    return not pa.types.is_float32(data_type) or not isinstance(value, int) or float(np.float32(value)) == value


def _compare_with_fraction(column: Column, op: str, value: Decimal) -> SqlCondition:
    """Compare an integer column with a fraction; nothing is implied for long columns, which Spark may round."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_MAX_SCALE or abs(value) >= 1 << 63:
        return UNKNOWN
    if op in (">", ">="):
        return _leaf(Term(column.name, ">", math.floor(value)))
    return _leaf(Term(column.name, "<", math.ceil(value))) if op in ("<", "<=") else UNKNOWN


def _after(prefix: str) -> str | None:
    """Return the least text greater than all with the prefix, in both orders of texts; None: unknown."""
    code = ord(prefix[-1]) + 1
    if any(ord(letter) > _LAST_BEFORE_SURROGATES for letter in prefix) or code > _LAST_BEFORE_SURROGATES:
        return None
    return prefix[:-1] + chr(code)


def _leaf(term: Term) -> SqlCondition:
    return SqlCondition(((term,),), ((Term(term.column, _NEGATED[term.op], term.value),),), True, True)
