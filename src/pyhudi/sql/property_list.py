"""Properties and options in parentheses, as of TBLPROPERTIES, OPTIONS, and WITH after a table in a query."""

from __future__ import annotations

from pyhudi.sql.token_cursor import Cursor


def parse_property_list(cursor: Cursor) -> dict[str, str]:
    """Parse properties in parentheses: ``key = value``, ``key value``.

    Raises:
        SqlSyntaxError: They are invalid.
    """
    properties: dict[str, str] = {}
    cursor.expect("(")
    while not cursor.take(")"):
        key = cursor.key()
        cursor.take("=")
        properties[key] = cursor.literal()
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    return properties


def parse_relation_options(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    """Consume the options of a table in a query, ``WITH (key = value, …)``, if there are some.

    Raises:
        SqlSyntaxError: They are invalid.
    """
    if not cursor.sees("WITH", "("):
        return ()
    cursor.at += 1
    return tuple(parse_property_list(cursor).items())
