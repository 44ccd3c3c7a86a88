"""CREATE TABLE and REPLACE TABLE: the clauses of a definition, and LIKE another table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyhudi.config.layout_methods import layout_options
from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.property_list import parse_property_list
from pyhudi.sql.statements import CreateTable, SelectStatement, Statement
from pyhudi.sql.token_cursor import Cursor

PROVIDERS = frozenset({"HUDI", "ORG.APACHE.HUDI", "PYHUDI"})
QUERIES = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "("})
_LAYOUTS = {"CLUSTERED": "bucketBy", "SORTED": "sortBy", "CLUSTER": "clusterBy"}
"""Clauses that lay out Spark's own tables, with the methods of writers that do the same."""
_CLAUSES = "USING, TBLPROPERTIES, PARTITIONED BY, LOCATION, COMMENT or AS"


def parse_table(cursor: Cursor, *, replace: bool) -> Statement | None:
    """Parse what follows CREATE TABLE or REPLACE TABLE.

    Returns:
        The statement; only its query for another table than one of Hudi; None if there is nothing to run but by Spark.

    Raises:
        SqlSyntaxError: The definition of a Hudi table is invalid.
    """
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    if cursor.take("LIKE"):
        return _like(cursor, name, if_not_exists=if_not_exists)
    try:
        return _definition(cursor, name, if_not_exists=if_not_exists, replace=replace)
    except SqlSyntaxError:
        if _names_hudi(cursor):
            raise
        return None  # Spark knows more of other providers' clauses.


def parse_external_table(cursor: Cursor) -> CreateTable | None:
    """Parse CREATE EXTERNAL TABLE, which is CREATE TABLE with a location; None for other than Hudi tables."""
    statement = parse_table(cursor, replace=False)
    if not isinstance(statement, CreateTable):
        return None
    if statement.location is None:
        raise SqlSyntaxError(
            f"an external table requires LOCATION; add it, or leave out EXTERNAL: {cursor.text.strip()}"
        )
    return statement


def _names_hudi(cursor: Cursor) -> bool:
    cursor.at = 0
    while not cursor.done:
        if cursor.take("USING"):
            return ".".join(cursor.name()).upper() in PROVIDERS
        cursor.at += 1
    return False


@dataclass
class _Clauses:
    """Clauses of CREATE TABLE that have been read so far.

    Attributes:
        columns: Text of the columns.
        provider: Format, in upper case; empty: it is not named.
        location: LOCATION.
        path: The option ``path``.
        comment: COMMENT.
        partitions: Names of the partition columns.
        typed: Text of the partition columns that are declared there.
        properties: Properties and options.
        query: Position of the query; None: there is none.
        unknown: Position of the first clause that Hudi does not have.
    """

    columns: str
    provider: str = ""
    location: str | None = None
    path: str | None = None
    comment: str | None = None
    partitions: tuple[str, ...] = ()
    typed: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    query: int | None = None
    unknown: int | None = None

    @property
    def is_hudi_table(self) -> bool:
        """True if the table is a Hudi table."""
        return self.provider in PROVIDERS


def _read_provider(cursor: Cursor, read: _Clauses) -> None:
    read.provider = ".".join(cursor.name()).upper()


def _read_options(cursor: Cursor, read: _Clauses) -> None:
    table_options = parse_property_list(cursor)
    path = next((table_options.pop(key) for key in list(table_options) if key.lower() == "path"), None)
    read.path = read.path if path is None else path
    read.properties |= table_options


def _read_properties(cursor: Cursor, read: _Clauses) -> None:
    read.properties |= parse_property_list(cursor)


def _read_partitions(cursor: Cursor, read: _Clauses) -> None:
    read.partitions, read.typed = _partitions(cursor)


def _read_location(cursor: Cursor, read: _Clauses) -> None:
    read.location = cursor.string()


def _read_comment(cursor: Cursor, read: _Clauses) -> None:
    read.comment = cursor.string()


_CLAUSE_READERS: Mapping[tuple[str, ...], Callable[[Cursor, _Clauses], None]] = {
    ("USING",): _read_provider,
    ("OPTIONS",): _read_options,
    ("TBLPROPERTIES",): _read_properties,
    ("PARTITIONED", "BY"): _read_partitions,
    ("LOCATION",): _read_location,
    ("COMMENT",): _read_comment,
}
"""Readers of what follows the words of a clause."""


def _read_clauses(cursor: Cursor) -> _Clauses:
    """Consume the clauses of CREATE TABLE up to the query.

    Raises:
        SqlSyntaxError: A Hudi table has another clause.
    """
    read = _Clauses(cursor.parenthesized() if cursor.sees("(") else "")
    while not cursor.done:
        reader = next((reader for words, reader in _CLAUSE_READERS.items() if cursor.take(*words)), None)
        if reader is not None:
            reader(cursor, read)
        elif cursor.sees("(") and cursor.word(1) not in QUERIES and not read.is_hudi_table:
            read.unknown = cursor.at if read.unknown is None else read.unknown
            cursor.parenthesized()
        elif cursor.take("AS") or cursor.word() in QUERIES:
            read.query = cursor.at
            break
        elif read.is_hudi_table:
            _refuse_clause(cursor)
        else:
            read.unknown = cursor.at if read.unknown is None else read.unknown
            cursor.at += 1
    if read.is_hudi_table and read.unknown is not None:
        cursor.at = read.unknown
        _refuse_clause(cursor)
    return read


def _refuse_clause(cursor: Cursor) -> None:
    """Refuse the next clause, which Hudi tables do not have.

    Raises:
        SqlSyntaxError: Always.
    """
    method = _LAYOUTS.get(cursor.word())
    if method is not None and cursor.word(1) == "BY":
        raise SqlSyntaxError(
            f"{cursor.words(2)} does not apply to Hudi tables: {layout_options(method)}, in: {cursor.text.strip()}"
        )
    cursor.fail(_CLAUSES)


def _definition(cursor: Cursor, name: tuple[str, ...], *, if_not_exists: bool, replace: bool) -> Statement | None:
    """Parse the definition of a table; None for one that is no Hudi table, and has no query."""
    read = _read_clauses(cursor)
    if not read.is_hudi_table:
        if read.query is None:
            return None
        cursor.at = read.query
        return SelectStatement(cursor.rest(), cursor.slice(0, read.query))
    if read.path is not None and read.location is not None:
        raise SqlSyntaxError(
            f"LOCATION and the option path both give the location of the table; use one: {cursor.text.strip()}"
        )
    query = None if read.query is None else cursor.rest()
    columns = ", ".join(filter(None, (read.columns, read.typed)))
    if columns and query is not None:
        raise SqlSyntaxError(
            f"a table AS a query has the query's columns; leave out ({columns}), or create the table first and insert "
            f"the query's rows: {cursor.text.strip()}"
        )
    return CreateTable(
        name,
        columns,
        query,
        None,
        read.partitions,
        read.properties,
        read.path if read.location is None else read.location,
        read.comment,
        if_not_exists,
        replace,
    )


def _like(cursor: Cursor, name: tuple[str, ...], *, if_not_exists: bool) -> CreateTable | None:
    like = cursor.name()
    properties: dict[str, str] = {}
    provider, location = "", None
    while not cursor.done:
        if cursor.take("USING"):
            provider = ".".join(cursor.name()).upper()
        elif cursor.take("TBLPROPERTIES"):
            properties |= parse_property_list(cursor)
        elif cursor.take("LOCATION"):
            location = cursor.string()
        else:
            return None
    if provider and provider not in PROVIDERS:
        return None
    return CreateTable(
        name,
        like=like,
        properties=properties,
        location=location,
        if_not_exists=if_not_exists,
        like_any=not provider,
    )


def function_partitions_message(function: str) -> str:
    """Return the error message for a table that is to be partitioned by a function of a column."""
    return (
        f"a Hudi table is partitioned by columns, not by functions such as {function}: add a column with the value, or "
        "set the key generator TimestampBasedKeyGenerator"
    )


def _partitions(cursor: Cursor) -> tuple[tuple[str, ...], str]:
    """Parse the columns of PARTITIONED BY; those with types are new, and their definitions are returned, too."""
    cursor.expect("(")
    names: list[str] = []
    typed: list[str] = []
    while True:
        start = cursor.at
        names.append(cursor.identifier())
        if cursor.sees("("):
            raise SqlSyntaxError(f"{function_partitions_message(f'{names[-1]}(…)')}; in: {cursor.text.strip()}")
        if cursor.word() not in (",", ")"):
            cursor.until(",")
            typed.append(cursor.slice(start, cursor.at))
        if not cursor.take(","):
            break
    cursor.expect(")")
    return tuple(names), ", ".join(typed)
