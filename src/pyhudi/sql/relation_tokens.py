"""Relations of a query by its tokens, for queries that sqlglot cannot parse.

sqlglot lacks some of Spark's syntax: steps of a pipe such as ``|> SET``, columns that are called like a statement
(``values``, ``update``), and parentheses nested a hundred times deep. Where the tables stand can be told without a
parser: after FROM and JOIN, and after the commas between them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.property_list import parse_relation_options
from pyhudi.sql.statements import Name
from pyhudi.sql.time_travel_clause import parse_time_travel
from pyhudi.sql.token_cursor import OPERATORS, Cursor

ColumnParts: TypeAlias = tuple[tuple[str, int, int], ...]
"""A column with its qualifiers: lower-case text, start and end (exclusive) of each part."""

_QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
_LIST_ENDS = frozenset(
    {"SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"}
) | {"WINDOW", "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "VIEW", "|>"}
"""Words after which commas do not separate relations."""
_BEFORE_COLUMNS = frozenset(sign for sign in OPERATORS if not sign.isalpha()) - {"*", ">"} | {"SELECT"}
"""Signs and words before a column, and never before the keyword FROM, as ``t.*`` and ``a::ARRAY<INT>`` may be."""
_NO_ALIASES = (
    _LIST_ENDS
    | {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "ON", "USING", "LATERAL"}
    | {"PIVOT", "UNPIVOT", "TABLESAMPLE", "INSERT", "SET"}
)
"""Words after a relation that are not its alias."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table in a query, or another relation with the syntax of one.

    Attributes:
        name: Parts of its name.
        start: Start of the name in the text.
        end: End of the name in the text.
        alias: Its alias; None if it has none.
    """

    name: Name
    start: int
    end: int
    alias: str | None


@dataclass(slots=True)
class _Parentheses:
    """Text between parentheses. ``reads``: a query begins in it, or relations, so that JOIN and FROM may name some.
    ``lists``: commas separate relations. ``relation``: it is a relation itself, so that an alias may follow."""

    reads: bool
    lists: bool = False
    relation: bool = False


@dataclass(frozen=True, slots=True)
class _Definition:
    """A name that WITH defines, in lower case, and the tokens between which a relation of the name is meant."""

    name: str
    start: int
    end: int


@dataclass(slots=True)
class RelationScanner:
    """Scanner of a query for its relations.

    Attributes:
        cursor: The tokens of the query.
        relations: The relations in text order, without those that WITH defines and functions.
        aliases: All aliases, and names that WITH defines, in lower case.
        streamed: Names after STREAM, with or without parentheses.
    """

    cursor: Cursor
    relations: list[Relation] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    streamed: list[Name] = field(default_factory=list)
    _open: list[_Parentheses] = field(default_factory=lambda: [_Parentheses(reads=True)])
    _definitions: list[_Definition] = field(default_factory=list)
    _expects: bool = False

    @classmethod
    def scanned(cls, cursor: Cursor) -> RelationScanner:
        """Scan a query."""
        scanner = cls(cursor)
        cursor.at = 0
        while not cursor.done:
            scanner._step()
        return scanner

    def _step(self) -> None:
        """Consume one token, or a relation with its alias."""
        cursor, word, inner = self.cursor, self.cursor.word(), self._open[-1]
        if word == "(":
            query = cursor.word(1) in _QUERY_STARTS
            group = self._expects and not query
            self._open.append(_Parentheses(reads=query or group, lists=group, relation=self._expects))
            self._expects = group
        elif word == ")":
            if len(self._open) > 1:
                self._open.pop()
            self._expects = False
            if inner.relation or self._open[-1].lists:  # a function and VALUES have aliases, too
                cursor.at += 1
                self._alias()
                return
        elif self._expects and word != "LATERAL":
            self._expects = False
            if word != "VALUES":
                self._relation()
                return
        elif word == "WITH" and inner.reads:
            self._define()
        elif word == ",":
            self._expects = inner.lists
        elif inner.reads and (word == "JOIN" or (word == "FROM" and not self._is_operand())):
            self._expects = True
            inner.lists = inner.lists or word == "FROM"
        elif word in _LIST_ENDS:
            inner.lists = False
        cursor.at += 1

    def _is_operand(self) -> bool:
        """Return True if FROM is a part of IS [NOT] DISTINCT FROM, or a column that is called so."""
        if not self.cursor.at:
            return False
        before = self.cursor.word(-1)
        return before in _BEFORE_COLUMNS or (before == "DISTINCT" and self.cursor.word(-2) in ("IS", "NOT"))

    def _relation(self) -> None:
        self._stream()
        cursor, at = self.cursor, self.cursor.at
        try:
            name = cursor.name()
        except SqlSyntaxError:
            cursor.at = at + 1
            return
        if cursor.sees("("):  # a function
            return
        start, end = cursor.tokens[at].start, cursor.tokens[cursor.at - 1].end + 1
        parse_time_travel(cursor)
        parse_relation_options(cursor)
        skip_sample(cursor)
        alias = self._alias()
        defined = len(name) == 1 and any(
            one.name == name[0].lower() and one.start <= at < one.end for one in self._definitions
        )
        if not defined:
            self.relations.append(Relation(name, start, end, alias))

    def _stream(self) -> None:
        """Note the name after STREAM. Does not consume anything."""
        cursor, at = self.cursor, self.cursor.at
        if cursor.take("STREAM"):
            cursor.take("(")
            with suppress(SqlSyntaxError):
                self.streamed.append(cursor.name())
        cursor.at = at

    def _alias(self) -> str | None:
        """Consume the alias of a relation, and return it."""
        cursor = self.cursor
        if cursor.done or (not cursor.take("AS") and cursor.word() in _NO_ALIASES):
            return None
        try:
            alias = cursor.identifier()
        except SqlSyntaxError:
            return None
        self.aliases.append(alias.lower())
        return alias

    def _define(self) -> None:
        """Note the names that WITH defines. Does not consume anything."""
        cursor, at = self.cursor, self.cursor.at
        cursor.until()
        end = cursor.at
        cursor.at = at + 1
        recursive = cursor.take("RECURSIVE")
        try:
            while True:
                name = cursor.identifier().lower()
                start = cursor.at
                if cursor.sees("("):  # names of columns, or the query if AS is left out
                    cursor.parenthesized()
                if cursor.take("MAX", "RECURSION", "LEVEL"):
                    cursor.at += 1
                cursor.take("AS")
                if cursor.sees("("):
                    cursor.parenthesized()
                self.aliases.append(name)
                self._definitions.append(_Definition(name, start if recursive else cursor.at, end))
                if not cursor.take(","):
                    break
        except SqlSyntaxError:
            pass
        cursor.at = at

    def columns(self) -> list[ColumnParts]:
        """Return the columns that have a qualifier, in text order."""
        cursor, named = self.cursor, {relation.start for relation in self.relations}
        columns, cursor.at = [], 0
        while not cursor.done:
            at = cursor.at
            parts = self._column()
            is_call = not cursor.done and cursor.word() == "("
            if len(parts) > 1 and parts[0][1] not in named and not is_call:
                columns.append(parts)
            cursor.at = max(cursor.at, at + 1)
        return columns

    def _column(self) -> ColumnParts:
        """Consume a column with its qualifiers; nothing if there is none."""
        cursor = self.cursor
        parts: list[tuple[str, int, int]] = []
        while not cursor.done:
            token = cursor.tokens[cursor.at]
            try:
                if not parts or not cursor.take("*"):
                    cursor.identifier()
            except SqlSyntaxError:
                break
            parts.append((token.text.lower(), token.start, token.end + 1))
            if not cursor.take("."):
                break
        return tuple(parts)


def skip_sample(cursor: Cursor) -> None:
    """Consume the sample of a table, if there is one."""
    if not cursor.take("TABLESAMPLE"):
        return
    cursor.until("(")
    if cursor.sees("("):
        cursor.parenthesized()
    if cursor.take("REPEATABLE"):
        cursor.parenthesized()
