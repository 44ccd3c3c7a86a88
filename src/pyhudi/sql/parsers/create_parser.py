"""CREATE and REPLACE: tables, views, indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyhudi.config.layout_methods import layout_cure
from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.statements import CreateFunction, CreateIndex, CreateTable, CreateView, SelectStatement, Statement
from pyhudi.sql.token_cursor import Cursor

PROVIDERS = frozenset({"HUDI", "ORG.APACHE.HUDI", "PYHUDI"})
QUERIES = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "("})
_LAYOUTS = {"CLUSTERED": "bucketBy", "SORTED": "sortBy", "CLUSTER": "clusterBy"}
"""Clauses that lay out Spark's own tables, with the methods of writers that do the same."""
_CLAUSES = "USING, TBLPROPERTIES, PARTITIONED BY, LOCATION, COMMENT or AS"


def parse_replace(cursor: Cursor) -> Statement | None:
    """Parse REPLACE TABLE."""
    cursor.expect("REPLACE")
    return _table(cursor, replace=True) if cursor.take("TABLE") else None


def parse_create(cursor: Cursor) -> Statement | None:
    """Parse CREATE TABLE, VIEW, INDEX or FUNCTION."""
    cursor.expect("CREATE")
    replace = cursor.take("OR", "REPLACE")
    if cursor.take("TABLE"):
        return _table(cursor, replace=replace)
    if not replace and cursor.take("EXTERNAL", "TABLE"):
        return _external_table(cursor)
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
    view_options = parse_properties(cursor) if cursor.take("OPTIONS") else {}
    cursor.finish()
    if [key.lower() for key in view_options] != ["path"]:
        raise SqlSyntaxError(
            f"a view USING hudi has the option path, and no others: {cursor.text.strip()}; load the DataFrame with "
            "options, and create the view by its createOrReplaceTempView"
        )
    path = next(iter(view_options.values())).replace("`", "``")
    return f"SELECT * FROM hudi.`{path}`"


def _table(cursor: Cursor, *, replace: bool) -> Statement | None:
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


def _external_table(cursor: Cursor) -> CreateTable | None:
    """Parse CREATE EXTERNAL TABLE, which is CREATE TABLE with a location; None for other than Hudi tables."""
    statement = _table(cursor, replace=False)
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
    table_options = parse_properties(cursor)
    path = next((table_options.pop(key) for key in list(table_options) if key.lower() == "path"), None)
    read.path = read.path if path is None else path
    read.properties |= table_options


def _read_properties(cursor: Cursor, read: _Clauses) -> None:
    read.properties |= parse_properties(cursor)


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
            f"{cursor.words(2)} does not apply to Hudi tables: {layout_cure(method)}, in: {cursor.text.strip()}"
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
            properties |= parse_properties(cursor)
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


def parse_properties(cursor: Cursor) -> dict[str, str]:
    """Parse properties in parentheses: ``key = value``, ``key value``."""
    properties: dict[str, str] = {}
    cursor.expect("(")
    while not cursor.take(")"):
        key = cursor.key()
        cursor.take("=")
        properties[key] = cursor.literal()
        if not cursor.take(",") and not cursor.sees(")"):
            cursor.fail("',' or ')'")
    return properties


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
                options |= parse_properties(cursor)
            if not cursor.take(",") and not cursor.sees(")"):
                cursor.fail("',' or ')'")
    if cursor.take("OPTIONS"):
        options |= parse_properties(cursor)
    cursor.finish()
    return CreateIndex(index, name, tuple(columns), using, options, if_not_exists)
