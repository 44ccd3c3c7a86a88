"""CALL of procedures."""

from __future__ import annotations

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.procedure_signatures import signatures
from pyhudi.sql.statements import Call
from pyhudi.sql.token_cursor import Cursor

_NUMBER_SUFFIXES = frozenset({"L", "S", "Y", "D", "F", "BD"})
_CONSTANTS: dict[str, object] = {"TRUE": True, "FALSE": False, "NULL": None}


def parse_call(cursor: Cursor) -> Call | None:
    """Parse CALL of a procedure, with values by position or by name (``name => value``); None if it is of another
    catalog."""
    cursor.expect("CALL")
    name = cursor.name()
    if len(name) == 3 and name[0].lower() != "spark_catalog":
        return None
    procedure = name[-1].lower()
    try:
        return _arguments(cursor, procedure)
    except SqlSyntaxError:
        if procedure in signatures():
            raise
        cursor.rest()
        return Call(procedure)  # may be one of another catalog, whose arguments are written otherwise


def _arguments(cursor: Cursor, procedure: str) -> Call:
    positional: list[object] = []
    named: dict[str, object] = {}
    if cursor.done:  # CALL help
        return Call(procedure)
    cursor.expect("(")
    while not cursor.take(")"):
        if cursor.word(1) == "=>":
            key = cursor.identifier().lower()
            cursor.at += 1
            if key in named:
                raise SqlSyntaxError(f"the argument {key!r} of {procedure} is passed twice")
            named[key] = _value(cursor)
        elif named:
            raise SqlSyntaxError(f"positional arguments of {procedure} must precede named ones")
        else:
            positional.append(_value(cursor))
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    cursor.finish()
    return Call(procedure, tuple(positional), named)


def _value(cursor: Cursor) -> object:
    if cursor.word() in _CONSTANTS:
        value = _CONSTANTS[cursor.word()]
        cursor.at += 1
        return value
    if cursor.tokens[cursor.at].kind == "STRING":
        return cursor.string()
    text = cursor.literal()
    if cursor.sees("::") and cursor.word(1) in _NUMBER_SUFFIXES:  # sqlglot's tokens of 10L
        cursor.at += 2
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise SqlSyntaxError(f"{text!r} is not a text, number or constant in: {cursor.text.strip()}") from None
