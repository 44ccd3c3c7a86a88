"""What must be true of rows that meet a condition in SQL, for files to be left out by it; Spark decides on the rows.

Comparisons of columns with literals of their own types are looked into (also ``IN``, ``BETWEEN``, ``LIKE 'p%'`` and
``IS NULL``), and how ``AND``, ``OR`` and ``NOT`` put them together. Of anything else nothing follows: functions,
arithmetic, comparisons that Spark casts for or that depend on settings of the session, such as its time zone.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.errors import QueryError
from pyhudi.read.filters import Term, literal
from pyhudi.read.sqltokens import END, Kind, Token, tokens

Groups: TypeAlias = tuple[tuple[Term, ...], ...]
"""A disjunction of conjunctions."""

ANYTHING: Groups = ((),)
_MOST_GROUPS = 64
_COMPARISONS = {"=": "=", "==": "=", "<=>": "<=>", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
_ENDS = {"AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "!", ")", ",", *_COMPARISONS}
_TOO_MUCH = {"CASE", "SELECT", "EXISTS", "--", "/*", ";"}
_LAST_BEFORE_SURROGATES = 0xD7FF
_MOST_EXACT = 1 << 53


def necessary(text: str, schema: pa.Schema) -> Groups | None:
    """Conditions of which every row meets one group that meets the SQL text; None: nothing follows from it."""
    found = tokens(text)
    if any(token.word in _TOO_MUCH for token in found):
        return None
    try:
        groups = _Parser(found, schema).parse().yes
    except _NotUnderstoodError:
        return None
    return None if () in groups else groups


class _NotUnderstoodError(Exception):
    """The text is no condition of the kind that is looked into."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """What must be true of rows for which a condition is true, and of those for which it is false."""

    yes: Groups = ANYTHING
    no: Groups = ANYTHING

    def __and__(self, other: _Condition) -> _Condition:
        return _Condition(_both(self.yes, other.yes), _either(self.no, other.no))

    def __or__(self, other: _Condition) -> _Condition:
        return _Condition(_either(self.yes, other.yes), _both(self.no, other.no))

    def __invert__(self) -> _Condition:
        return _Condition(self.no, self.yes)


UNKNOWN = _Condition()


def _both(a: Groups, b: Groups) -> Groups:
    if len(a) * len(b) > _MOST_GROUPS:
        # one of the two alone must be true as well
        return a if len(a) <= len(b) else b
    return tuple(tuple(dict.fromkeys((*x, *y))) for x in a for y in b)


def _either(a: Groups, b: Groups) -> Groups:
    if () in a or () in b or len(a) + len(b) > _MOST_GROUPS:
        return ANYTHING
    return a + b


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any


_Operand: TypeAlias = _Column | _Literal | None
"""None: anything else."""


class _Parser:
    """Recursive descent over tokens."""

    def __init__(self, found: list[Token], schema: pa.Schema) -> None:
        self._tokens, self._schema, self._at = found, schema, 0

    def parse(self) -> _Condition:
        condition = self._any()
        if self._next is not END:
            raise _NotUnderstoodError
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _take(self, *words: str) -> str | None:
        """Go on behind the next token if it is one of these."""
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
        """A condition in parentheses; None, and nothing taken, where a value is in them or none begin."""
        start = self._at
        if self._take("("):
            try:
                condition = self._any()
                self._expect(")")
                if self._next is END or self._next.word in ("AND", "OR", ")"):
                    return condition
            except _NotUnderstoodError:
                pass
        self._at = start
        return None

    def _predicate(self) -> _Condition:
        left = self._operand()
        negated = self._take("NOT", "!") is not None
        word = self._next.word
        if word in _COMPARISONS and not negated:
            self._at += 1
            condition = _compared(left, _COMPARISONS[word], self._operand())
        elif self._take("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            condition = _compared(left, ">=", low) & _compared(left, "<=", self._operand())
        elif self._take("IN"):
            condition = self._among(left)
        elif self._take("LIKE"):
            pattern = self._operand()
            condition = _like(left, pattern)
        elif self._take("ILIKE", "RLIKE", "REGEXP"):
            self._operand()
            condition = UNKNOWN
        elif self._take("IS"):
            condition = self._is(left)
        elif negated:
            raise _NotUnderstoodError
        else:
            condition = _compared(left, "=", _Literal(True))
        if self._next is not END and self._next.word not in ("AND", "OR", ")"):
            raise _NotUnderstoodError
        return ~condition if negated else condition

    def _is(self, left: _Operand) -> _Condition:
        negated = self._take("NOT") is not None
        if self._take("NULL"):
            condition = UNKNOWN
            if isinstance(left, _Column):
                condition = _leaf(Term(left.name, "=", None))
            return ~condition if negated else condition
        self._operand()
        return UNKNOWN

    def _among(self, left: _Operand) -> _Condition:
        self._expect("(")
        values: list[_Operand] = [self._operand()]
        while self._take(","):
            values.append(self._operand())
        self._expect(")")
        if not isinstance(left, _Column) or not all(isinstance(value, _Literal) for value in values):
            return UNKNOWN
        given = [value.value for value in values if isinstance(value, _Literal) and value.value is not None]
        fitting = [_fitting(value, left.kind) for value in given]
        if not given or any(value is None for value in fitting):
            return UNKNOWN
        return _leaf(Term(left.name, "in", tuple(fitting)))

    def _operand(self) -> _Operand:
        """A value: a column, a literal, or anything else, which ends where the condition goes on."""
        start, depth = self._at, 0
        while self._next is not END:
            word = self._next.word
            if depth == 0 and word in _ENDS:
                break
            depth += {"(": 1, ")": -1}.get(word, 0)
            self._at += 1
        taken = self._tokens[start : self._at]
        if not taken or depth:
            raise _NotUnderstoodError
        return _literal(taken) or _column(taken, self._schema)


def _literal(taken: list[Token]) -> _Literal | None:
    if len(taken) == 1:
        (one,) = taken
        if one.kind is Kind.VALUE:
            return _Literal(one.value)
        known: dict[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}
        return _Literal(known[one.word]) if one.word in known else None
    if len(taken) == 2:
        first, second = taken
        if first.word in ("-", "+") and isinstance(second.value, int | float | Decimal):
            return _Literal(-second.value if first.word == "-" else second.value)
        if first.word == "DATE" and isinstance(second.value, str):
            try:
                return _Literal(dt.datetime.strptime(second.value, "%Y-%m-%d").date())
            except ValueError:
                return None
    return None


def _column(taken: list[Token], schema: pa.Schema) -> _Column | None:
    """The column that a dotted name means, whose parts are found as they are written or else whatever their case."""
    parts, dots = taken[::2], taken[1::2]
    if any(part.kind not in (Kind.WORD, Kind.NAME) for part in parts) or any(dot.text != "." for dot in dots):
        return None
    if len(dots) != len(parts) - 1:
        return None
    inside: Any = schema
    names: list[str] = []
    for part in parts:
        if not isinstance(inside, pa.Schema) and not pa.types.is_struct(inside):
            return None
        known = [field.name for field in inside]
        mine = [name for name in known if name.lower() == part.text.lower()]
        if len(mine) != 1 or "." in mine[0]:
            return None
        names.append(mine[0])
        inside = inside.field(mine[0]).type
    name = ".".join(names)
    # a column whose own name has dots in it would be taken for it
    return None if len(names) > 1 and name in schema.names else _Column(name, inside)


def _compared(left: _Operand, op: str, right: _Operand) -> _Condition:
    if isinstance(left, _Literal) and isinstance(right, _Column):
        left, right, op = right, left, _TURNED.get(op, op)
    if not isinstance(left, _Column) or not isinstance(right, _Literal):
        return UNKNOWN
    if right.value is None:
        return _leaf(Term(left.name, "=", None)) if op == "<=>" else UNKNOWN
    if isinstance(right.value, Decimal) and pa.types.is_integer(left.kind) and right.value % 1:
        return _beside(left, op, right.value)
    value = _fitting(right.value, left.kind)
    if value is None:
        return UNKNOWN
    if op == "<=>":
        # not equal is also what is null
        return _Condition(((Term(left.name, "=", value),),))
    return _leaf(Term(left.name, op, value))


def _beside(column: _Column, op: str, value: Decimal) -> _Condition:
    """A whole number compared with one that is not."""
    if op in (">", ">="):
        return _leaf(Term(column.name, ">", math.floor(value)))
    return _leaf(Term(column.name, "<", math.ceil(value))) if op in ("<", "<=") else UNKNOWN


def _like(left: _Operand, pattern: _Operand) -> _Condition:
    if not isinstance(left, _Column) or not isinstance(pattern, _Literal) or not isinstance(pattern.value, str):
        return UNKNOWN
    if not _is_text(left.kind):
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
    return _Condition((tuple(terms),))


def _after(prefix: str) -> str | None:
    """The least text that is greater than all with the prefix, in every order of texts that is about; None: unknown."""
    code = ord(prefix[-1]) + 1
    if any(ord(letter) > _LAST_BEFORE_SURROGATES for letter in prefix) or code > _LAST_BEFORE_SURROGATES:
        return None
    return prefix[:-1] + chr(code)


def _leaf(term: Term) -> _Condition:
    return _Condition(((term,),), ((Term(term.column, _NEGATED[term.op], term.value),),))


def _fitting(value: Any, kind: pa.DataType) -> Any:
    """The value as one of the column's type; None where Spark would cast the column, or settings count."""
    for is_kind, convert in _CONVERSIONS:
        if is_kind(kind):
            found = convert(value)
            return found if found is not None and _is_comparable(found, kind) else None
    return None


def _is_comparable(value: Any, kind: pa.DataType) -> bool:
    try:
        return literal(value, kind, "") is not None
    except QueryError:
        return False


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if value % 1 or not -(1 << 63) < value < 1 << 63:
        return None
    return int(value)


def _floating(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return None if isinstance(value, int) and abs(value) > _MOST_EXACT else float(value)


def _exact(value: Any) -> Decimal | None:
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _only(*kinds: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kinds) else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_integer, _whole),
    (pa.types.is_floating, _floating),
    (pa.types.is_decimal, _exact),
    (pa.types.is_boolean, _only(bool)),
    (pa.types.is_date32, _only(dt.date)),
    (_is_text, _only(str)),
)
