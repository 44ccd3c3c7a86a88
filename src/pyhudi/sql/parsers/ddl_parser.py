"""Statements that change, drop, truncate or refresh tables and views, and those of session variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.sql.parsers.alter_parser import parse_alter_columns
from pyhudi.sql.parsers.create_table_parser import QUERIES
from pyhudi.sql.parsers.dml_parser import parse_partition
from pyhudi.sql.property_list import parse_property_list
from pyhudi.sql.statements import (
    AlterColumns,
    ChangeColumn,
    ChangeView,
    DropIndex,
    DropPartitions,
    DropTable,
    ExecuteImmediate,
    Name,
    RefreshIndex,
    RefreshTable,
    RenameTable,
    RepairPartitions,
    SelectStatement,
    SetProperties,
    Statement,
    Truncate,
    UnsupportedAlter,
    UnsupportedStatement,
)
from pyhudi.sql.token_cursor import Cursor


def parse_alter(cursor: Cursor) -> Statement | None:
    """Parse ALTER TABLE or VIEW."""
    cursor.expect("ALTER")
    if cursor.take("VIEW"):
        return _alter_view(cursor)
    if not cursor.take("TABLE"):
        return None
    name = cursor.name()
    for words, parse in _ALTERATIONS.items():
        if cursor.take(*words):
            return cursor.finished(parse(cursor, name))
    if cursor.sees("DROP", "PARTITION") or cursor.sees("DROP", "IF", "EXISTS", "PARTITION"):
        return _drop_partitions(cursor, name)
    if cursor.sees("ADD", "PARTITION") or cursor.sees("ADD", "IF", "NOT", "EXISTS", "PARTITION"):
        return UnsupportedStatement(name, "ADD PARTITION", "a partition comes with its first row: INSERT", cursor.text)
    return parse_alter_columns(cursor, name) or UnsupportedAlter(name, cursor.words(3))


def _set_properties(cursor: Cursor, name: Name) -> SetProperties:
    return SetProperties(name, changed=parse_property_list(cursor))


def _unset_properties(cursor: Cursor, name: Name) -> SetProperties:
    if_exists = cursor.take("IF", "EXISTS")
    return SetProperties(name, remove=_keys(cursor), if_exists=if_exists)


def _rename(cursor: Cursor, name: Name) -> RenameTable:
    return RenameTable(name, cursor.name())


def _recover_partitions(_: Cursor, name: Name) -> RepairPartitions:
    return RepairPartitions(name)


_ALTERATIONS: Mapping[tuple[str, ...], Callable[[Cursor, Name], Statement]] = {
    ("SET", "TBLPROPERTIES"): _set_properties,
    ("SET", "SERDEPROPERTIES"): _set_properties,
    ("UNSET", "TBLPROPERTIES"): _unset_properties,
    ("RENAME", "TO"): _rename,
    ("RECOVER", "PARTITIONS"): _recover_partitions,
}
"""Parsers of the text after the words of a change."""


def _alter_view(cursor: Cursor) -> ChangeView:
    name = cursor.name()
    if cursor.take("RENAME", "TO"):
        return cursor.finished(ChangeView(name, "ALTER", cursor.name()))
    has_word = cursor.take("AS")  # which Spark does without
    if not has_word and (cursor.word() not in QUERIES or _sees_schema_binding(cursor)):
        return ChangeView(name, "ALTER", clauses=cursor.rest())
    head = cursor.slice(0, cursor.at)
    return ChangeView(name, "ALTER", query=cursor.rest(), head=head)


def _sees_schema_binding(cursor: Cursor) -> bool:
    """Return True if WITH SCHEMA EVOLUTION or the like comes next, and no query with a definition called ``schema``."""
    return cursor.sees("WITH", "SCHEMA") and cursor.word(2) in ("BINDING", "COMPENSATION", "EVOLUTION", "TYPE")


def _keys(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    keys = [cursor.key()]
    while cursor.take(","):
        keys.append(cursor.key())
    cursor.expect(")")
    return tuple(keys)


def _drop_partitions(cursor: Cursor, name: Name) -> DropPartitions:
    cursor.expect("DROP")
    if_exists = cursor.take("IF", "EXISTS")
    specs = []
    while cursor.take("PARTITION"):
        specs.append(parse_partition(cursor))
        cursor.take(",")
    cursor.take("PURGE")
    cursor.finish()
    return DropPartitions(name, tuple(specs), if_exists)


def parse_truncate(cursor: Cursor) -> Truncate:
    """Parse TRUNCATE TABLE."""
    cursor.expect("TRUNCATE", "TABLE")
    name = cursor.name()
    partition = parse_partition(cursor) if cursor.take("PARTITION") else {}
    cursor.finish()
    return Truncate(name, partition)


def parse_drop(cursor: Cursor) -> Statement | None:
    """Parse DROP TABLE, VIEW or INDEX."""
    cursor.expect("DROP")
    if cursor.take("VIEW"):
        cursor.take("IF", "EXISTS")
        return cursor.finished(ChangeView(cursor.name(), "DROP"))
    if cursor.take("TABLE"):
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.name()
        purge = cursor.take("PURGE")
        cursor.finish()
        return DropTable(name, if_exists, purge)
    if not cursor.take("INDEX"):
        return None
    if_exists = cursor.take("IF", "EXISTS")
    index = cursor.identifier()
    name = _on(cursor)
    return DropIndex(index, name, if_exists)


def _on(cursor: Cursor) -> Name:
    cursor.expect("ON")
    cursor.take("TABLE")
    name = cursor.name()
    cursor.finish()
    return name


def parse_refresh(cursor: Cursor) -> Statement | None:
    """Parse REFRESH INDEX or TABLE."""
    cursor.expect("REFRESH")
    if cursor.take("INDEX"):
        return RefreshIndex(cursor.identifier(), _on(cursor))
    return cursor.finished(RefreshTable(cursor.name())) if cursor.take("TABLE") else None


def parse_comment(cursor: Cursor) -> SetProperties | AlterColumns | None:
    """Parse COMMENT ON TABLE and COMMENT ON COLUMN; None for other objects."""
    of_column = cursor.take("COMMENT", "ON", "COLUMN")
    if not of_column and not cursor.take("COMMENT", "ON", "TABLE"):
        return None
    name = cursor.name()
    cursor.expect("IS")
    comment = None if cursor.take("NULL") else cursor.string()
    cursor.finish()
    if of_column:
        *table, column = name
        return AlterColumns(tuple(table), (ChangeColumn((column,), comment=comment or ""),)) if table else None
    return SetProperties(name, remove=("comment",)) if comment is None else SetProperties(name, {"comment": comment})


def parse_variable(cursor: Cursor) -> SelectStatement | None:
    """Parse SET VARIABLE and DECLARE of a session variable: their values may be queries."""
    declares = cursor.take("DECLARE")
    if not declares and not (cursor.take("SET", "VAR") or cursor.take("SET", "VARIABLE")):
        return None
    cursor.until("=", "DEFAULT")
    if cursor.done:
        return None
    cursor.at += 1
    head = cursor.slice(0, cursor.at)
    return SelectStatement(cursor.rest(), head)


def parse_execute(cursor: Cursor) -> ExecuteImmediate | None:
    """Parse EXECUTE IMMEDIATE."""
    if not cursor.take("EXECUTE", "IMMEDIATE"):
        return None
    text = cursor.until("INTO", "USING")
    into = cursor.until("USING") if cursor.take("INTO") else ""
    using = _without_parentheses(cursor) if cursor.take("USING") else ""
    return ExecuteImmediate(text, into, using)


def _without_parentheses(cursor: Cursor) -> str:
    """Consume everything up to the end. Return its text, without the parentheses around the whole of it."""
    start = cursor.at
    if cursor.sees("("):
        inner = cursor.parenthesized()
        if cursor.done:
            return inner
        cursor.at = start
    return cursor.rest()
