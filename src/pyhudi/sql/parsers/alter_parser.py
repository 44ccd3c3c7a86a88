"""Statements that change columns: ALTER TABLE … ADD, RENAME, DROP, ALTER, CHANGE COLUMN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pyhudi.sql.statements import (
    AddColumn,
    AddColumns,
    AlterColumns,
    ChangeColumn,
    ColumnChange,
    DropColumn,
    Name,
    RenameColumn,
    Statement,
)
from pyhudi.sql.token_cursor import Cursor

_T = TypeVar("_T")
_DEPTH = {"<": 1, "(": 1, ">": -1, ">>": -2, ">>>": -3, ")": -1}
_AFTER_TYPE = frozenset({",", "COMMENT", "FIRST", "AFTER", "NOT", "DEFAULT"})


def parse_alter_columns(cursor: Cursor, name: Name) -> Statement | None:
    """Parse the text after ALTER TABLE and the table's name; None if it changes no columns."""
    if _takes(cursor, "ADD"):
        return _add_columns(cursor, name)
    changes: tuple[ColumnChange, ...]
    if cursor.take("RENAME", "COLUMN"):
        path = cursor.name()
        cursor.expect("TO")
        changes = (RenameColumn(path, cursor.identifier()),)
    elif _takes(cursor, "DROP"):
        changes = _drop_columns(cursor)
    elif cursor.take("ALTER") or cursor.take("CHANGE"):
        cursor.take("COLUMN")
        changes = _change_column(cursor)
        while cursor.take(","):
            change = _spark_change(cursor, cursor.name())
            if change is None:
                cursor.fail("TYPE, COMMENT, FIRST, AFTER or [SET | DROP] NOT NULL")
            else:
                changes = (*changes, change)
    else:
        return None
    cursor.finish()
    return AlterColumns(name, changes)


def _takes(cursor: Cursor, verb: str) -> bool:
    return cursor.take(verb, "COLUMNS") or cursor.take(verb, "COLUMN")


def _add_columns(cursor: Cursor, name: Name) -> Statement:
    start = cursor.at
    columns = cursor.parenthesized() if cursor.sees("(") else cursor.rest()
    cursor.finish()
    end, cursor.at = cursor.at, start
    added = _listed(cursor, _added)
    cursor.at = end
    if all(len(column.path) == 1 and not column.first and column.after is None for column in added):
        return AddColumns(name, columns)
    return AlterColumns(name, tuple(added))


def _listed(cursor: Cursor, parse: Callable[[Cursor], _T]) -> list[_T]:
    inside = cursor.take("(")
    items = [parse(cursor)]
    while cursor.take(","):
        items.append(parse(cursor))
    if inside:
        cursor.expect(")")
    return items


def _added(cursor: Cursor) -> AddColumn:
    path = cursor.name()
    cursor.take(":")
    kind, not_null, comment, first, after = _type(cursor), False, None, False, None
    while not cursor.done and not cursor.sees(",") and not cursor.sees(")"):
        if cursor.take("NOT", "NULL"):
            not_null = True
        elif cursor.take("COMMENT"):
            comment = cursor.string()
        elif cursor.take("FIRST"):
            first = True
        elif cursor.take("AFTER"):
            after = cursor.identifier()
        else:
            cursor.fail("NOT NULL, COMMENT, FIRST or AFTER")
    return AddColumn(path, kind, comment, first, after, not_null)


def _type(cursor: Cursor) -> str:
    """Consume the text of a type."""
    start, depth = cursor.at, 0
    while not cursor.done and (depth or cursor.word() not in _AFTER_TYPE):
        step = _DEPTH.get(cursor.word(), 0)
        if depth + step < 0:
            break
        depth += step
        cursor.at += 1
    if cursor.at == start:
        cursor.fail("a type")
    return cursor.slice(start, cursor.at)


def _drop_columns(cursor: Cursor) -> tuple[DropColumn, ...]:
    if_exists = cursor.take("IF", "EXISTS")
    return tuple(DropColumn(path, if_exists) for path in _listed(cursor, Cursor.name))


_COLUMN_CHANGES: Mapping[tuple[str, ...], Callable[[Cursor, Name], ChangeColumn]] = {
    ("TYPE",): lambda cursor, path: ChangeColumn(path, kind=_type(cursor)),
    ("COMMENT",): lambda cursor, path: ChangeColumn(path, comment=cursor.string()),
    ("FIRST",): lambda _, path: ChangeColumn(path, first=True),
    ("AFTER",): lambda cursor, path: ChangeColumn(path, after=cursor.identifier()),
    ("DROP", "NOT", "NULL"): lambda _, path: ChangeColumn(path, nullable=True),
    ("SET", "NOT", "NULL"): lambda _, path: ChangeColumn(path, nullable=False),
}
"""Parsers of the text after the words of a change of a column."""


def _spark_change(cursor: Cursor, path: Name) -> ChangeColumn | None:
    """Parse a change of a column in Spark's form; None if it is none."""
    return next((parse(cursor, path) for words, parse in _COLUMN_CHANGES.items() if cursor.take(*words)), None)


def _change_column(cursor: Cursor) -> tuple[ColumnChange, ...]:
    path = cursor.name()
    in_sparks_form = _spark_change(cursor, path)
    if in_sparks_form is not None:
        return (in_sparks_form,)
    # Hive's form: current name, new name, type, and further clauses.
    to = cursor.identifier()
    cursor.take(":")
    change = ChangeColumn(path, kind=_type(cursor))
    if cursor.take("COMMENT"):
        change = ChangeColumn(path, change.kind, cursor.string())
    place = ChangeColumn(path, first=True) if cursor.take("FIRST") else None
    if cursor.take("AFTER"):
        place = ChangeColumn(path, after=cursor.identifier())
    changes: list[ColumnChange] = [change] if place is None else [change, place]
    if to.lower() != path[-1].lower():
        changes.append(RenameColumn(path, to))
    return tuple(changes)
