"""Values of parameters (``?`` and ``:name``) as literals in the text of a statement."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyhudi.errors import QueryError
from pyhudi.sql.string_literals import string_expression
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import NAME_KINDS, Cursor, Token

_INT = 1 << 31
_VALUE_ENDS = frozenset({"R_PAREN", "R_BRACKET"})


@dataclass(frozen=True, slots=True)
class SqlLiteral:
    """A value that is a literal in SQL already.

    Attributes:
        text: The literal.
    """

    text: str


def has_positional_parameters(text: str) -> bool:
    """Return True if a statement has parameters without names (``?``)."""
    return any(token.kind == "PLACEHOLDER" for token in Cursor(text).tokens)


def with_literals(text: str, args: object, *, escapes: bool = True) -> str:
    """Return a statement with literals in place of its parameters. Named parameters without a value stay.

    Args:
        text: The statement.
        args: The values: a mapping of those of named parameters, a sequence of the others, or None.
        escapes: As of `string_expression`.

    Raises:
        QueryError: A value is not a single one, but a list or a Column, for example, or a value is missing.
    """
    if not args:
        return text
    cursor = Cursor(text)
    if isinstance(args, Mapping):
        return with_edits(text, _named_parameter_edits(cursor, args, escapes=escapes))
    if not isinstance(args, Sequence):
        raise QueryError(f"args are a dictionary or a list of values, not {args!r}")
    places = [token for token in cursor.tokens if token.kind == "PLACEHOLDER"]
    if len(places) > len(args):
        raise QueryError(f"the statement has {len(places)} parameters, and there are {len(args)} values")
    pairs = zip(places, args, strict=False)
    return with_edits(
        text, [TextEdit.of_tokens(token, token, _literal(value, "?", escapes=escapes)) for token, value in pairs]
    )


def _named_parameter_edits(cursor: Cursor, args: Mapping[str, object], *, escapes: bool) -> list[TextEdit]:
    edits: list[TextEdit] = []
    before: Token | None = None
    for colon, name in zip(cursor.tokens, cursor.tokens[1:], strict=False):
        if colon.kind == "COLON" and name.start == colon.end + 1 and name.text in args:
            # not the type of a field, STRUCT<x:INT>, nor the path into a variant, parse_json(a):x
            after_name = before is not None and before.kind in NAME_KINDS and before.end + 1 == colon.start
            after_value = before is not None and before.kind in _VALUE_ENDS
            if name.kind != "STRING" and not after_name and not after_value:
                literal = _literal(args[name.text], f":{name.text}", escapes=escapes)
                edits.append(TextEdit.of_tokens(colon, name, literal))
        before = colon
    return edits


def _literal(value: object, name: str, *, escapes: bool) -> str:
    """Return a value as a literal of the type that Spark gives it as a parameter."""
    match value:
        case SqlLiteral():
            text = value.text
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            text = str(value) if -_INT <= value < _INT else f"{value}L"
        case float():
            text = f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            text = f"{value:f}BD"
        case str():
            return string_expression(value, escapes=escapes)
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case dt.datetime():
            utc = value.astimezone(dt.UTC).replace(tzinfo=None)
            text = f"TIMESTAMP '{utc.isoformat(' ', 'microseconds')} UTC'"
        case dt.date():
            text = f"DATE '{value.isoformat()}'"
        case dt.time() if value.tzinfo is None:
            text = f"TIME '{value.isoformat()}'"  # which Spark 3.5 refuses
        case dt.timedelta():
            text = f"INTERVAL '{_day_to_second(value)}' DAY TO SECOND"
        case _:
            raise QueryError(
                f"the parameter {name} is {value!r}: parameters of a statement that changes a Hudi table are single "
                "values (text, numbers, times, None); put others into the statement, or into a DataFrame ({name} of "
                "spark.sql)"
            )
    return f"({text})" if text.startswith("-") else text


def _day_to_second(value: dt.timedelta) -> str:
    """Return a duration as days, hours, minutes, seconds and microseconds, after one sign.

    >>> _day_to_second(dt.timedelta(hours=-1.5))
    '-0 01:30:00.000000'
    """
    rest = abs(value)
    minutes, seconds = divmod(rest.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if value < dt.timedelta() else ""
    return f"{sign}{rest.days} {hours:02}:{minutes:02}:{seconds:02}.{rest.microseconds:06}"
