"""Conditions implied by a SQL predicate, for pruning files. Spark evaluates the predicate itself; an equivalent
condition can also be evaluated without Spark.

Supported are comparisons of columns with literals of their own types (including ``IN``, ``BETWEEN``, ``LIKE 'p%'`` and
``IS NULL``), combined by ``AND``, ``OR`` and ``NOT``, and functions if there is an index on the same expression.
Nothing is derived from other conditions: arithmetic, comparisons with implicit casts or that depend on settings of the
session, such as its time zone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyhudi.arrow.arrays import is_text
from pyhudi.read.filters.sql_operands import (
    Column,
    Known,
    Literal,
    Operand,
    as_column_type,
    is_whole,
    operand_of,
)
from pyhudi.read.filters.sql_tokenizer import END, Token, tokens
from pyhudi.read.filters.terms import Term

Conjunctions: TypeAlias = tuple[tuple[Term, ...], ...]
"""A disjunction of conjunctions."""

ANYTHING: Conjunctions = ((),)
_MOST_CONJUNCTIONS = 64
_MOST_NESTED = 40
"""Number of parentheses in each other that are looked into, each of which takes some of Python's stack."""
_COMPARISONS = {"=": "=", "==": "=", "<=>": "<=>", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
_ENDS = {"AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "!", ")", ",", *_COMPARISONS}
_TOO_MUCH = {"CASE", "SELECT", "EXISTS", "--", "/*", ";"}
_MOST_SCALE = 18
_LAST_BEFORE_SURROGATES = 0xD7FF


def implied_predicate(text: str, schema: pa.Schema, known: Known | None = None) -> Conjunctions | None:
    """Return conditions implied by the SQL text: every matching row satisfies one conjunction; None: nothing is
    implied.

    Terms on ``known`` expressions have the text of the expression as the column.
    """
    condition = _parsed(text, schema, known or {})
    return None if condition is None or () in condition.if_true else condition.if_true


def equivalent_conditions(text: str, schema: pa.Schema) -> Conjunctions | None:
    """Return conditions equivalent to the SQL text: exactly the matching rows satisfy one conjunction; None: it is not
    fully supported."""
    condition = _parsed(text, schema, {})
    return condition.if_true if condition is not None and condition.exact_if_true else None


def literal_of_other_type(text: str, schema: pa.Schema) -> str:
    """Return why the SQL text is not fully supported, if it compares a column with a literal of another type, which
    only Spark casts; empty for other reasons."""
    condition = _parsed(text, schema, {})
    return "" if condition is None else condition.other_type


def _parsed(text: str, schema: pa.Schema, known: Known) -> _Condition | None:
    if "${" in text:  # Replaced by a setting of the session before parsing.
        return None
    sql_tokens = tokens(text)
    if any(token.word in _TOO_MUCH for token in sql_tokens):
        return None
    try:
        return _Parser(sql_tokens, schema, known).parse()
    except _NotUnderstoodError:
        return None


class _NotUnderstoodError(Exception):
    """The text is not a supported condition."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """Conditions implied for rows for which a predicate is true, and for those for which it is false; ``exact_if_true``
    and ``exact_if_false``: the condition is equivalent. ``other_type`` says which column it compares with a literal of
    another type, if any."""

    if_true: Conjunctions = ANYTHING
    if_false: Conjunctions = ANYTHING
    exact_if_true: bool = False
    exact_if_false: bool = False
    other_type: str = ""

    def __and__(self, other: _Condition) -> _Condition:
        return _Condition(
            _conjunction(self.if_true, other.if_true),
            _either(self.if_false, other.if_false),
            self.exact_if_true and other.exact_if_true and len(self.if_true) * len(other.if_true) <= _MOST_CONJUNCTIONS,
            self.exact_if_false
            and other.exact_if_false
            and len(self.if_false) + len(other.if_false) <= _MOST_CONJUNCTIONS,
            self.other_type or other.other_type,
        )

    def __or__(self, other: _Condition) -> _Condition:
        return ~(~self & ~other)

    def __invert__(self) -> _Condition:
        return _Condition(self.if_false, self.if_true, self.exact_if_false, self.exact_if_true, self.other_type)


UNKNOWN = _Condition()


def _conjunction(a: Conjunctions, b: Conjunctions) -> Conjunctions:
    if len(a) * len(b) > _MOST_CONJUNCTIONS:
        # Each of the two must be true as well.
        return a if len(a) <= len(b) else b
    return tuple(tuple(dict.fromkeys((*x, *y))) for x in a for y in b)


def _either(a: Conjunctions, b: Conjunctions) -> Conjunctions:
    if () in a or () in b or len(a) + len(b) > _MOST_CONJUNCTIONS:
        return ANYTHING
    return a + b


class _Parser:
    """Recursive-descent parser."""

    def __init__(self, tokens: list[Token], schema: pa.Schema, known: Known) -> None:
        self._tokens, self._schema, self._known, self._at = tokens, schema, known, 0
        self._nested = 0

    def parse(self) -> _Condition:
        condition = self._any()
        if self._next is not END:
            raise _NotUnderstoodError
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _take(self, *words: str) -> str | None:
        """Consume the next token if it is one of these."""
        word = self._next.word
        if word not in words:
            return None
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._take(word) is None:
            raise _NotUnderstoodError

    def _any(self) -> _Condition:
        condition = self._all()
        while self._take("OR"):
            condition |= self._all()
        return condition

    def _all(self) -> _Condition:
        condition = self._one()
        while self._take("AND"):
            condition &= self._one()
        return condition

    def _one(self) -> _Condition:
        if self._take("NOT", "!"):
            return ~self._one()
        inner = self._in_parentheses()
        return self._predicate() if inner is None else inner

    def _in_parentheses(self) -> _Condition | None:
        """Return a condition in parentheses; None, without consuming tokens, if there is an operand in parentheses or
        none."""
        start = self._at
        if self._nested < _MOST_NESTED and self._take("("):
            self._nested += 1
            try:
                condition = self._any()
                self._expect(")")
                if self._next is END or self._next.word in ("AND", "OR", ")"):
                    return condition
            except _NotUnderstoodError:
                pass
            finally:
                self._nested -= 1
        self._at = start
        return None

    def _predicate(self) -> _Condition:
        left = self._operand()
        negated = self._take("NOT", "!") is not None
        word = self._next.word
        if word in _COMPARISONS and not negated:
            self._at += 1
            condition = _compared(left, _COMPARISONS[word], self._operand())
        elif word in _TESTS:
            self._at += 1
            condition = _TESTS[word](self, left)
        elif negated:
            raise _NotUnderstoodError
        else:
            condition = _compared(left, "=", Literal(True))
        if self._next is not END and self._next.word not in ("AND", "OR", ")"):
            raise _NotUnderstoodError
        return ~condition if negated else condition

    def _between(self, left: Operand) -> _Condition:
        low = self._operand()
        self._expect("AND")
        return _compared(left, ">=", low) & _compared(left, "<=", self._operand())

    def _like(self, left: Operand) -> _Condition:
        return _matching(left, self._operand())

    def _unknown(self, _: Operand) -> _Condition:
        self._operand()
        return UNKNOWN

    def _is(self, left: Operand) -> _Condition:
        negated = self._take("NOT") is not None
        if self._take("NULL"):
            condition = UNKNOWN
            if isinstance(left, Column):
                condition = _leaf(Term(left.name, "=", None))
            return ~condition if negated else condition
        return self._unknown(left)

    def _among(self, left: Operand) -> _Condition:
        self._expect("(")
        values: list[Operand] = [self._operand()]
        while self._take(","):
            values.append(self._operand())
        self._expect(")")
        if not isinstance(left, Column) or not all(isinstance(value, Literal) for value in values):
            return UNKNOWN
        literals = [value.value for value in values if isinstance(value, Literal) and value.value is not None]
        values_of_kind = [as_column_type(value, left.data_type) for value in literals]
        if None in values_of_kind:
            return _of_other_type(left, literals[values_of_kind.index(None)])
        if not literals:
            return UNKNOWN
        leaf = _leaf(Term(left.name, "in", tuple(values_of_kind)))
        same_types = all(_is_same(value, left.data_type) for value in literals)
        # With null in the list, a value that is not in the list does not satisfy NOT IN either.
        return replace(leaf, exact_if_true=same_types, exact_if_false=same_types and len(literals) == len(values))

    def _operand(self) -> Operand:
        """Return an operand: a column, a literal, or anything else, which ends where the condition continues."""
        start, depth = self._at, 0
        while self._next is not END:
            word = self._next.word
            if depth == 0 and word in _ENDS:
                break
            depth += {"(": 1, ")": -1}.get(word, 0)
            self._at += 1
        operand_tokens = self._tokens[start : self._at]
        if not operand_tokens or depth:
            raise _NotUnderstoodError
        return operand_of(operand_tokens, self._schema, self._known)


_TESTS: Mapping[str, Callable[[_Parser, Operand], _Condition]] = {
    "BETWEEN": _Parser._between,
    "IN": _Parser._among,
    "LIKE": _Parser._like,
    "IS": _Parser._is,
    **dict.fromkeys(("ILIKE", "RLIKE", "REGEXP"), _Parser._unknown),
}
"""Parsers of what follows an operand, by its first word."""


def _compared(left: Operand, op: str, right: Operand) -> _Condition:
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
        return _Condition(((Term(left.name, "=", value),),), exact_if_true=_is_same(right.value, left.data_type))
    whole = _is_same(right.value, left.data_type)
    return replace(_leaf(Term(left.name, op, value)), exact_if_true=whole, exact_if_false=whole)


def _of_other_type(column: Column, value: Any) -> _Condition:
    """Return the condition of a comparison that depends on a cast."""
    shown = repr(value) if isinstance(value, str) else str(value).upper() if isinstance(value, bool) else str(value)
    return _Condition(other_type=f"column {column.name!r} has type {column.data_type}, and {shown} another one")


def _is_same(value: Any, data_type: pa.DataType) -> bool:
    """Return True if a number is unchanged in the type of a column: Spark converts integers to float32."""
    return not pa.types.is_float32(data_type) or not isinstance(value, int) or float(np.float32(value)) == value


def _compare_with_fraction(column: Column, op: str, value: Decimal) -> _Condition:
    """Compare an integer column with a fraction; nothing is implied for long columns, which Spark may round."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_MOST_SCALE or abs(value) >= 1 << 63:
        return UNKNOWN
    if op in (">", ">="):
        return _leaf(Term(column.name, ">", math.floor(value)))
    return _leaf(Term(column.name, "<", math.ceil(value))) if op in ("<", "<=") else UNKNOWN


def _matching(left: Operand, pattern: Operand) -> _Condition:
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
    return _Condition((tuple(terms),), exact_if_true=end is not None and text == f"{prefix}%")


def _after(prefix: str) -> str | None:
    """Return the least text greater than all with the prefix, in both orders of texts; None: unknown."""
    code = ord(prefix[-1]) + 1
    if any(ord(letter) > _LAST_BEFORE_SURROGATES for letter in prefix) or code > _LAST_BEFORE_SURROGATES:
        return None
    return prefix[:-1] + chr(code)


def _leaf(term: Term) -> _Condition:
    return _Condition(((term,),), ((Term(term.column, _NEGATED[term.op], term.value),),), True, True)
