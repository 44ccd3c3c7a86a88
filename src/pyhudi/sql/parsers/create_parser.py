"""CREATE and REPLACE of tables, views, indexes and functions."""

from __future__ import annotations

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.parsers.create_table_parser import PROVIDERS, QUERIES, parse_external_table, parse_table
from pyhudi.sql.property_list import parse_property_list
from pyhudi.sql.statements import CreateFunction, CreateIndex, CreateView, Statement
from pyhudi.sql.token_cursor import Cursor


def parse_replace(cursor: Cursor) -> Statement | None:
    """Parse REPLACE TABLE."""
    cursor.expect("REPLACE")
    return parse_table(cursor, replace=True) if cursor.take("TABLE") else None


def parse_create(cursor: Cursor) -> Statement | None:
    """Parse CREATE TABLE, VIEW, INDEX or FUNCTION."""
    cursor.expect("CREATE")
    replace = cursor.take("OR", "REPLACE")
    if cursor.take("TABLE"):
        return parse_table(cursor, replace=replace)
    if not replace and cursor.take("EXTERNAL", "TABLE"):
        return parse_external_table(cursor)
    if not replace and cursor.take("INDEX"):
        return _index(cursor)
    temporary = False
    while cursor.word() in ("GLOBAL", "TEMP", "TEMPORARY"):
        temporary = True
        cursor.at += 1
    if cursor.take("FUNCTION"):
        return _function(cursor)
    is_view = cursor.take("VIEW") or (temporary and cursor.take("TABLE"))  # which is a view, too
    return _view(cursor, temporary=temporary, replace=replace) if is_view else None


def _view(cursor: Cursor, *, temporary: bool, replace: bool) -> CreateView:
    cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    clauses = cursor.until("AS", "USING")
    end = cursor.at
    if cursor.take("USING"):
        query = _query_of_path(cursor)
        text = cursor.text if query is None else f"{cursor.slice(0, end)} AS"
        return CreateView(name, text, query, temporary, replace)
    if not cursor.take("AS"):
        return CreateView(name, cursor.text, None, temporary, replace)
    return CreateView(name, cursor.slice(0, cursor.at), cursor.rest(), temporary, replace, clauses)


def _function(cursor: Cursor) -> CreateFunction | None:
    """Parse a function in SQL; None for one of a class."""
    cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    cursor.until("RETURN")
    if not cursor.take("RETURN"):
        return None
    is_query = cursor.word() in QUERIES - {"("}
    return CreateFunction(name, cursor.rest() if is_query else f"SELECT {cursor.rest()}")


def _query_of_path(cursor: Cursor) -> str | None:
    """Parse ``hudi OPTIONS (path '…')`` of a view. Return a query of its rows; None for other providers."""
    if ".".join(cursor.name()).upper() not in PROVIDERS:
        return None
    view_options = parse_property_list(cursor) if cursor.take("OPTIONS") else {}
    cursor.finish()
    if [key.lower() for key in view_options] != ["path"]:
        raise SqlSyntaxError(
            f"a view USING hudi has the option path, and no others: {cursor.text.strip()}; load the DataFrame with "
            "options, and create the view by its createOrReplaceTempView"
        )
    path = next(iter(view_options.values())).replace("`", "``")
    return f"SELECT * FROM hudi.`{path}`"


def _index(cursor: Cursor) -> CreateIndex:
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    index = cursor.identifier()
    cursor.expect("ON")
    cursor.take("TABLE")
    name = cursor.name()
    using = cursor.identifier().lower() if cursor.take("USING") else None
    columns: list[str] = []
    options: dict[str, str] = {}
    if cursor.take("("):
        while not cursor.take(")"):
            columns.append(".".join(cursor.name()))
            if cursor.take("OPTIONS"):
                options |= parse_property_list(cursor)
            if not cursor.take(",") and not cursor.sees(")"):
                cursor.fail("',' or ')'")
    if cursor.take("OPTIONS"):
        options |= parse_property_list(cursor)
    cursor.finish()
    return CreateIndex(index, name, tuple(columns), using, options, if_not_exists)
