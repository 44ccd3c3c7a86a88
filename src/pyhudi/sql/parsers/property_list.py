"""Properties and options in parentheses, as of TBLPROPERTIES and OPTIONS."""

from __future__ import annotations

from pyhudi.sql.token_cursor import Cursor


def parse_properties(cursor: Cursor) -> dict[str, str]:
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
