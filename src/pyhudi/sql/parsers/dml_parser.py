"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from dataclasses import replace

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.property_list import parse_relation_options
from pyhudi.sql.statements import (
    ClauseKind,
    Delete,
    Insert,
    Merge,
    MergeClause,
    Name,
    SelectStatement,
    Statement,
    Update,
)
from pyhudi.sql.token_cursor import OPERATORS, Cursor

_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "<>", "!=", "<=>", "==", "IN", "LIKE", "BETWEEN"})


def parse_insert(cursor: Cursor) -> Statement | None:
    """Parse INSERT; None if it does not insert into a table."""
    start = cursor.at
    cursor.expect("INSERT")
    _refuse_schema_evolution(cursor, "INSERT")
    overwrite = cursor.take("OVERWRITE")
    if not overwrite and not cursor.take("INTO"):
        return None
    table = cursor.take("TABLE")
    if overwrite and not table and (cursor.sees("DIRECTORY") or cursor.sees("LOCAL", "DIRECTORY")):
        _skip_directory(cursor)
        head = cursor.slice(start, cursor.at)
        return None if cursor.done else SelectStatement(cursor.rest(), head)
    name = cursor.name()
    write_options = dict(parse_relation_options(cursor))
    if not overwrite and (cursor.sees("REPLACE") or cursor.sees("BY", "NAME", "REPLACE")):
        return replace(_replace_where(cursor, name, start), options=write_options)
    partition = parse_partition(cursor) if cursor.take("PARTITION") else {}
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if if_not_exists and (not overwrite or not partition or None in partition.values()):
        raise SqlSyntaxError(
            "IF NOT EXISTS requires INSERT OVERWRITE … PARTITION (column = value), with values of all its columns"
        )
    columns: tuple[str, ...] = ()
    by_name = cursor.take("BY", "NAME")
    begins_query = cursor.word(1) in ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
    if cursor.sees("(") and (not begins_query or cursor.word(2) in (",", ")")):  # a column may be called so
        columns = tuple(_names(cursor))
    head = cursor.slice(start, cursor.at)
    query = cursor.rest()
    if not query:
        cursor.fail("a query or VALUES")
    return Insert(
        name,
        query,
        head,
        overwrite,
        partition,
        columns,
        by_name,
        if_not_exists,
        options=write_options,
    )


def _refuse_schema_evolution(cursor: Cursor, statement: str) -> None:
    if cursor.sees("WITH", "SCHEMA", "EVOLUTION"):
        raise SqlSyntaxError(
            f"{statement} WITH SCHEMA EVOLUTION is not supported: add the columns by ALTER TABLE first"
        )


def _replace_where(cursor: Cursor, name: Name, start: int) -> Insert:
    """Parse the rest of INSERT INTO … REPLACE WHERE."""
    by_name = cursor.take("BY", "NAME")
    if cursor.word(1) in ("ON", "USING"):
        raise SqlSyntaxError(
            f"INSERT … REPLACE {cursor.word(1)} is not supported: use MERGE, or REPLACE WHERE with a condition on "
            f"columns of the table, in: {cursor.text.strip()}"
        )
    cursor.expect("REPLACE", "WHERE")
    condition = _condition_before_query(cursor)
    head = cursor.slice(start, cursor.at)
    query = cursor.rest()
    if not condition or not query:
        cursor.fail("a condition, and a query or VALUES")
    return Insert(name, query, head, by_name=by_name, replace_where=condition)


def _condition_before_query(cursor: Cursor) -> str:
    """Consume a condition up to the query after it, which may be in parentheses. Return its text."""
    start, depth = cursor.at, 0
    while not cursor.done:
        if not depth and cursor.at > start and cursor.word(-1) not in OPERATORS and _begins_query(cursor):
            break
        depth += (cursor.word() in ("(", "[")) - (cursor.word() in (")", "]"))
        cursor.at += 1
    return cursor.slice(start, cursor.at)


def _begins_query(cursor: Cursor) -> bool:
    ahead = 0
    while cursor.word(ahead) == "(":
        ahead += 1
    return cursor.word(ahead) in _QUERY_STARTS


def _skip_directory(cursor: Cursor) -> None:
    """Consume the description of a directory, up to the query, which may be in parentheses."""
    while not cursor.done:
        cursor.until("(", *_QUERY_STARTS)
        if cursor.take("MAP", "KEYS"):  # of the row format
            continue
        if not cursor.sees("(") or (cursor.word(-1) != "OPTIONS" and cursor.word(1) in ("(", *_QUERY_STARTS)):
            return
        cursor.parenthesized()


def _names(cursor: Cursor) -> list[str]:
    cursor.expect("(")
    names = [cursor.identifier()]
    while cursor.take(","):
        names.append(cursor.identifier())
    cursor.expect(")")
    return names


def parse_partition(cursor: Cursor) -> dict[str, str | None]:
    """Parse ``(column = value, column)``, at least one."""
    spec: dict[str, str | None] = {}
    cursor.expect("(")
    if cursor.sees(")"):
        cursor.fail("a partition column")
    while not cursor.take(")"):
        column = cursor.identifier()
        if column.lower() in map(str.lower, spec):
            raise SqlSyntaxError(f"the partition column {column!r} is given twice in: {cursor.text.strip()}")
        if cursor.word() in _COMPARISONS:
            raise SqlSyntaxError(
                f"PARTITION takes values ({column} = value), as in Spark, and no {cursor.word()}: name each partition, "
                f"or use DELETE FROM … WHERE {column} {cursor.word()} …, in: {cursor.text.strip()}"
            )
        spec[column] = cursor.until(",") if cursor.take("=") else None
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    return spec


def _alias(cursor: Cursor, *ends: str) -> str | None:
    if cursor.take("AS"):
        return cursor.identifier()
    return None if cursor.done or cursor.word() in ends else cursor.identifier()


def parse_update(cursor: Cursor) -> Update:
    cursor.expect("UPDATE")
    name = cursor.name()
    alias = _alias(cursor, "SET")
    cursor.expect("SET")
    assigned = _assignments(cursor, "WHERE")
    where = cursor.rest() if cursor.take("WHERE") else None
    cursor.finish()
    return Update(name, assigned, alias, where)


def _assignments(cursor: Cursor, *ends: str) -> dict[str, str]:
    assignments: dict[str, str] = {}
    while True:
        column = ".".join(_quoted(part) for part in cursor.name())
        if cursor.sees("["):
            raise _assigned_element(cursor, column)
        cursor.expect("=")
        value = _without_default(cursor.until(",", *ends))
        if not value:
            cursor.fail("a value")
        if column in assignments:
            raise _assigned_twice(cursor, column)
        assignments[column] = value
        if not cursor.take(","):
            return assignments


def _without_default(value: str) -> str:
    """Return NULL for the keyword DEFAULT: columns of Hudi tables have no other default value."""
    return "NULL" if value.upper() == "DEFAULT" else value


def _assigned_element(cursor: Cursor, column: str) -> SqlSyntaxError:
    return SqlSyntaxError(
        f"an element of {column!r} cannot be assigned, as in Spark; assign the whole column: of an array {column} = "
        f"transform({column}, (x, i) -> IF(i = 0, value, x)), of a map {column} = map_concat(map_filter({column}, "
        f"(k, v) -> k <> key), map(key, value)), in: {cursor.text.strip()}"
    )


def _assigned_twice(cursor: Cursor, column: str) -> SqlSyntaxError:
    return SqlSyntaxError(f"the column {column!r} is assigned twice in: {cursor.text.strip()}")


def _quoted(part: str) -> str:
    return f"`{part}`" if "." in part or "`" in part else part


def parse_delete(cursor: Cursor) -> Delete:
    cursor.expect("DELETE", "FROM")
    name = cursor.name()
    alias = _alias(cursor, "WHERE")
    where = cursor.rest() if cursor.take("WHERE") else None
    cursor.finish()
    return Delete(name, alias, where)


def parse_merge(cursor: Cursor) -> Merge:
    cursor.expect("MERGE")
    _refuse_schema_evolution(cursor, "MERGE")
    cursor.expect("INTO")
    name = cursor.name()
    alias = _alias(cursor, "USING")
    cursor.expect("USING")
    source = cursor.until("ON")
    cursor.expect("ON")
    on = cursor.until("WHEN")
    clauses: list[MergeClause] = []
    while cursor.take("WHEN"):
        clauses.append(_clause(cursor))
    cursor.finish()
    if not clauses:
        cursor.fail("WHEN")
    return Merge(name, alias, source, on, tuple(clauses))


def _clause(cursor: Cursor) -> MergeClause:
    kind = ClauseKind.MATCHED
    if cursor.take("NOT"):
        kind = ClauseKind.NOT_MATCHED
    cursor.expect("MATCHED")
    if cursor.take("BY", "SOURCE"):
        if kind is ClauseKind.MATCHED:
            cursor.fail("NOT MATCHED BY SOURCE")
        kind = ClauseKind.NOT_MATCHED_BY_SOURCE
    else:
        cursor.take("BY", "TARGET")
    condition = cursor.until("THEN") if cursor.take("AND") else None
    cursor.expect("THEN")
    if cursor.take("DELETE"):
        return MergeClause(kind, "DELETE", condition)
    if cursor.take("UPDATE"):
        cursor.expect("SET")
        values = None if cursor.take("*") else _assignments(cursor, "WHEN")
        return MergeClause(kind, "UPDATE", condition, values)
    cursor.expect("INSERT")
    return MergeClause(kind, "INSERT", condition, None if cursor.take("*") else _inserted(cursor))


def _inserted(cursor: Cursor) -> dict[str, str]:
    columns: list[str] = []
    cursor.expect("(")
    while not cursor.take(")"):
        column = ".".join(_quoted(part) for part in cursor.name())
        if column in columns:
            raise _assigned_twice(cursor, column)
        columns.append(column)
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    cursor.expect("VALUES")
    cursor.expect("(")
    values: list[str] = []
    while not cursor.take(")"):
        values.append(_without_default(cursor.until(",")))
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    if len(columns) != len(values):
        raise SqlSyntaxError(f"INSERT has {len(columns)} columns and {len(values)} values in: {cursor.text.strip()}")
    return dict(zip(columns, values, strict=True))
