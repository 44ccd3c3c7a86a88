"""Operands of SQL conditions: columns, literals, and functions of columns that are indexed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.arrow.arrays import is_text
from pyhudi.errors import ConfigError, QueryError
from pyhudi.metadata.indexes.expression_index_definition import FUNCTIONS, Expression
from pyhudi.read.filters.sql_tokenizer import Kind, Token
from pyhudi.read.filters.terms import literal
from pyhudi.schema.name_resolution import matches_ignoring_case

_MAX_EXACT = 1 << 53


ALIASES = {
    "dayofmonth": "day",
    "lcase": "lower",
    "ucase": "upper",
    "substr": "substring",
    "to_unix_timestamp": "unix_timestamp",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
}
"""Aliases of Spark functions."""
_TRIMS = ("trim", "ltrim", "rtrim")
_SIDES = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_DEFAULTS = {"regexp_extract": {"idx": "1"}}

Known: TypeAlias = Mapping[Expression, pa.DataType]
"""Indexed expressions, with the types of their values."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or an indexed expression; ``name`` is then its text."""

    name: str
    data_type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal; None is null."""

    value: Any


Operand: TypeAlias = Column | Literal | None
"""None: any other operand."""


def operand_of(tokens: list[Token], schema: pa.Schema, known: Known) -> Operand:
    """Parse tokens of an operand. Parentheses around it, as around negative parameters, do not change it."""
    while len(tokens) > 2 and tokens[0].word == "(" and tokens[-1].word == ")":
        tokens = tokens[1:-1]
    return _literal(tokens) or _column(tokens, schema) or (_call(tokens, schema, known) if known else None)


def _literal(tokens: list[Token]) -> Literal | None:
    if len(tokens) == 1:
        (one,) = tokens
        if one.kind is Kind.VALUE:
            return Literal(one.value)
        constants: dict[str, Any] = {"TRUE": True, "FALSE": False, "NULL": None}
        return Literal(constants[one.word]) if one.word in constants else None
    if len(tokens) == 2:
        first, second = tokens
        if first.word in ("-", "+") and isinstance(second.value, int | float | Decimal):
            value = second.value
            if first.word == "-":  # Negation would round long decimals.
                value = value.copy_negate() if isinstance(value, Decimal) else -value
            return Literal(value)
        if first.word == "DATE" and isinstance(second.value, str):
            try:
                return Literal(dt.datetime.strptime(second.value, "%Y-%m-%d").date())
            except ValueError:
                return None
    return None


def _column(tokens: list[Token], schema: pa.Schema) -> Column | None:
    """Return the column of a dotted name in any case; None if a part may be either of two columns."""
    parts, dots = tokens[::2], tokens[1::2]
    if any(part.kind not in (Kind.WORD, Kind.NAME) for part in parts) or any(dot.text != "." for dot in dots):
        return None
    if len(dots) != len(parts) - 1:
        return None
    inside: Any = schema
    names: list[str] = []
    for part in parts:
        if not isinstance(inside, pa.Schema) and not pa.types.is_struct(inside):
            return None
        matching = matches_ignoring_case(part.text, [field.name for field in inside])
        if len(matching) != 1 or "." in matching[0]:
            return None
        names.append(matching[0])
        inside = inside.field(matching[0]).type
    name = ".".join(names)
    # A column whose own name contains dots would be confused with it.
    return None if len(names) > 1 and name in schema.names else Column(name, inside)


def _call(tokens: list[Token], schema: pa.Schema, known: Known) -> Column | None:
    """Return the expression of a function call, if it is indexed."""
    if len(tokens) < 4 or tokens[0].kind is not Kind.WORD or tokens[1].word != "(" or tokens[-1].word != ")":
        return None
    name, inside = tokens[0].text.lower(), tokens[2:-1]
    function = ALIASES.get(name, name)
    if function == "trim":
        function, inside = _trimmed(inside)
    if any(token.word in ("(", ")", "FROM") for token in inside):
        return None
    parts = _split_arguments(inside)
    if function in _TRIMS and len(parts) > 1:
        parts.reverse()  # The characters to trim are the first argument.
    column, arguments = _column(parts[0], schema), [_literal(part) for part in parts[1:]]
    expression = None if column is None else _expression(function, column.name, arguments)
    return None if expression is None or expression not in known else Column(str(expression), known[expression])


def _trimmed(inside: list[Token]) -> tuple[str, list[Token]]:
    """Return the function of a ``trim`` call, and its arguments with a comma instead of ``FROM``."""
    words = [token.word for token in inside]
    side = _SIDES.get(words[0]) if "FROM" in words else None
    if side is not None:
        inside, words = inside[1:], words[1:]
    if words.count("FROM") != 1:
        return "trim", inside
    at = words.index("FROM")
    comma = [Token(Kind.SIGN, ",")] if at else []
    return side or "trim", [*inside[:at], *comma, *inside[at + 1 :]]


def _split_arguments(inside: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in inside:
        if token.word == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _expression(function: str, column: str, arguments: list[Literal | None]) -> Expression | None:
    """Return the expression of a function with arguments; None if indexes do not support it."""
    names = FUNCTIONS[function].options if function in FUNCTIONS else ()
    values = [None if argument is None else argument.value for argument in arguments]
    if len(values) > len(names) or not all(isinstance(value, str | int) for value in values):
        return None
    options = {name: str(value) for name, value in zip(names, values, strict=False)}
    try:
        return Expression.from_options(function, column, {**_DEFAULTS.get(function, {}), **options})
    except ConfigError:
        return None


def as_column_type(value: Any, data_type: pa.DataType) -> Any:
    """Return the value in the column's type; None if Spark would cast the column, or the result depends on settings."""
    for is_kind, convert in _CONVERSIONS:
        if is_kind(data_type):
            converted = convert(value)
            return converted if converted is not None and _is_comparable(converted, data_type) else None
    return None


def _is_comparable(value: Any, data_type: pa.DataType) -> bool:
    try:
        return bool(pa.types.is_integer(data_type) or literal(value, data_type, "").type == data_type)
    except QueryError:
        return False


def _whole_number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return int(value) if -(1 << 63) < value < 1 << 63 and is_whole(value) else None


def is_whole(value: int | Decimal) -> bool:
    """Return True if a number has no fraction, of any length."""
    return isinstance(value, int) or value == value.to_integral_value()


def _floating(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return None if isinstance(value, int) and abs(value) > _MAX_EXACT else float(value)


def _exact(value: Any) -> Decimal | None:
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _only(*kinds: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kinds) else None


_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_integer, _whole_number),
    (pa.types.is_floating, _floating),
    (pa.types.is_decimal, _exact),
    (pa.types.is_boolean, _only(bool)),
    (pa.types.is_date32, _only(dt.date)),
    (is_text, _only(str)),
)
