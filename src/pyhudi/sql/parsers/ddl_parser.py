"""Statements that define, show or maintain a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.parsers.alter_parser import parse_alter_columns
from pyhudi.sql.parsers.create_parser import QUERIES, parse_properties
from pyhudi.sql.parsers.dml_parser import parse_partition
from pyhudi.sql.procedure_signatures import signatures
from pyhudi.sql.statements import (
    Call,
    ChangeView,
    Describe,
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
    Show,
    ShowTableExtended,
    ShowViews,
    Statement,
    Truncate,
    UnsupportedAlter,
    UnsupportedStatement,
)
from pyhudi.sql.token_cursor import Cursor

_T = TypeVar("_T")
_NAMES = frozenset({"VAR", "IDENTIFIER"})
_NUMBER_SUFFIXES = frozenset({"L", "S", "Y", "D", "F", "BD"})
_CONSTANTS: dict[str, object] = {"TRUE": True, "FALSE": False, "NULL": None}


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
            return _whole(cursor, parse(cursor, name))
    if cursor.sees("DROP", "PARTITION") or cursor.sees("DROP", "IF", "EXISTS", "PARTITION"):
        return _drop_partitions(cursor, name)
    if cursor.sees("ADD", "PARTITION") or cursor.sees("ADD", "IF", "NOT", "EXISTS", "PARTITION"):
        return UnsupportedStatement(name, "ADD PARTITION", "a partition comes with its first row: INSERT", cursor.text)
    return parse_alter_columns(cursor, name) or UnsupportedAlter(name, cursor.words(3))


def _set_properties(cursor: Cursor, name: Name) -> SetProperties:
    return SetProperties(name, changed=parse_properties(cursor))


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


def _whole(cursor: Cursor, statement: _T) -> _T:
    """Return a statement after which nothing may follow."""
    cursor.finish()
    return statement


def _alter_view(cursor: Cursor) -> ChangeView:
    name = cursor.name()
    if cursor.take("RENAME", "TO"):
        return _whole(cursor, ChangeView(name, "ALTER", cursor.name()))
    has_word = cursor.take("AS")  # which Spark does without
    if not has_word and cursor.word() not in QUERIES:
        return ChangeView(name, "ALTER")
    head = cursor.slice(0, cursor.at)
    return ChangeView(name, "ALTER", query=cursor.rest(), head=head)


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
        return _whole(cursor, ChangeView(cursor.name(), "DROP"))
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
    return _whole(cursor, RefreshTable(cursor.name())) if cursor.take("TABLE") else None


def parse_show(cursor: Cursor) -> Statement | None:
    """Parse SHOW of one table, SHOW VIEWS and SHOW TABLE EXTENDED."""
    cursor.expect("SHOW")
    if cursor.take("VIEWS"):
        return ShowViews()
    if cursor.take("TABLE", "EXTENDED"):
        return _show_table_extended(cursor)
    for words, parse in _SHOWN.items():
        if cursor.take(*words):
            return _whole(cursor, parse(cursor))
    return None


def _show_partitions(cursor: Cursor) -> Show:
    name = cursor.name()
    partition = parse_partition(cursor) if cursor.take("PARTITION") else {}
    return Show(name, "PARTITIONS", partition=partition)


def _show_create_table(cursor: Cursor) -> Show:
    name = cursor.name()
    cursor.take("AS", "SERDE")
    return Show(name, "CREATE TABLE")


def _show_properties(cursor: Cursor) -> Show:
    name = cursor.name()
    key = None
    if cursor.take("("):
        key = cursor.key()
        cursor.expect(")")
    return Show(name, "TBLPROPERTIES", key)


def _show_indexes(cursor: Cursor) -> Show:
    if not cursor.take("FROM"):
        cursor.expect("IN")
    if cursor.kind(1) in _NAMES:
        cursor.take("TABLE")
    return Show(cursor.name(), "INDEXES")


_SHOWN: Mapping[tuple[str, ...], Callable[[Cursor], Show]] = {
    ("PARTITIONS",): _show_partitions,
    ("CREATE", "TABLE"): _show_create_table,
    ("TBLPROPERTIES",): _show_properties,
    ("INDEXES",): _show_indexes,
}
"""Parsers of the text after the words of what is shown."""


def _show_table_extended(cursor: Cursor) -> ShowTableExtended:
    database = cursor.name() if cursor.take("FROM") or cursor.take("IN") else None
    cursor.take("LIKE")
    pattern = cursor.string() if cursor.kind() == "STRING" else ""
    partition = parse_partition(cursor) if cursor.take("PARTITION") else {}
    return ShowTableExtended(database, pattern, partition)


def parse_describe(cursor: Cursor) -> Describe | None:
    """Parse DESCRIBE of a table; None for other objects."""
    cursor.at += 1
    if cursor.word() in ("DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "CATALOG", "QUERY", "SELECT", "WITH", "DETAIL"):
        return None
    cursor.take("TABLE")
    extended = cursor.take("EXTENDED") or cursor.take("FORMATTED")
    if cursor.done or cursor.word() in ("(", "SELECT", "VALUES", "FROM"):
        return None
    name = cursor.name()
    if cursor.done:
        return Describe(name, extended)
    if extended and cursor.take("AS", "JSON"):
        return Describe(name, extended, as_json=True) if cursor.done else None
    if cursor.sees("PARTITION", "("):
        cursor.take("PARTITION")
        partition = parse_partition(cursor)
        return Describe(name, extended, partition=partition) if cursor.done else None
    column = ".".join(cursor.name())
    return Describe(name, extended, column) if cursor.done else None


def parse_comment(cursor: Cursor) -> SetProperties | None:
    """Parse COMMENT ON TABLE; None for other objects."""
    if not cursor.take("COMMENT", "ON", "TABLE"):
        return None
    name = cursor.name()
    cursor.expect("IS")
    if cursor.take("NULL"):
        return _whole(cursor, SetProperties(name, remove=("comment",)))
    return _whole(cursor, SetProperties(name, changed={"comment": cursor.string()}))


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
