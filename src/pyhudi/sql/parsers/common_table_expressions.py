"""Common table expressions: the definitions of WITH before a statement that changes a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.sql.statements import Merge
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor

_QUERY_STARTS = frozenset({"SELECT", "FROM", "VALUES", "TABLE", "WITH"})


@dataclass(frozen=True, slots=True)
class CommonTableExpressions:
    """The definitions of a WITH.

    Attributes:
        starts: Names of what they define, in lower case, with the number of the token at which its query begins.
        definitions: Their text, without WITH and RECURSIVE.
        recursive: They are of WITH RECURSIVE.
    """

    starts: Mapping[str, int]
    definitions: str
    recursive: bool

    @property
    def text(self) -> str:
        """WITH and the definitions, as they stand before a query."""
        return f"WITH {'RECURSIVE ' if self.recursive else ''}{self.definitions}"

    def in_subqueries(self, text: str) -> str:
        """Return a text in which the outermost subqueries begin with the definitions.

        The name of a definition is then known where the statement may use it: Spark, too, puts the definitions in
        place of their names when the statement is none that only reads.
        """
        cursor = Cursor(text)
        edits: list[TextEdit] = []
        while not cursor.done:
            if not cursor.take("(") or cursor.word() not in _QUERY_STARTS:
                cursor.at += not cursor.sees("(")
                continue
            edits.append(self._edit(cursor))
            cursor.until()
        return with_edits(text, edits)

    def _edit(self, cursor: Cursor) -> TextEdit:
        """Return the edit of the subquery that begins here, which may have definitions of its own."""
        start = cursor.tokens[cursor.at].start
        if not cursor.take("WITH"):
            return TextEdit(start, start, f"{self.text} ")
        recursive = cursor.take("RECURSIVE") or self.recursive
        end = cursor.tokens[cursor.at].start
        return TextEdit(start, end, f"WITH {'RECURSIVE ' if recursive else ''}{self.definitions}, ")

    def as_source(self, merge: Merge) -> str:
        """Return the source of a MERGE, as a subquery if it is the name of a definition."""
        cursor = Cursor(merge.source)
        if cursor.sees("("):
            return merge.source
        name = cursor.name()
        if len(name) > 1 or name[0].lower() not in self.starts:
            return merge.source
        return f"({self.text} SELECT * FROM `{name[0]}`) {cursor.rest() or f'`{name[0]}`'}"


def parse_definitions(cursor: Cursor) -> CommonTableExpressions:
    """Consume WITH and its definitions.

    Raises:
        SqlSyntaxError: They are invalid.
    """
    cursor.expect("WITH")
    recursive = cursor.take("RECURSIVE")
    start = cursor.at
    starts: dict[str, int] = {}
    while True:
        name = cursor.identifier().lower()
        if cursor.sees("("):
            content = cursor.at
            cursor.parenthesized()
            if cursor.done or cursor.word() in (",", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE"):
                cursor.at = content  # AS was left out: these are no names of columns
        if cursor.take("MAX", "RECURSION", "LEVEL"):
            cursor.at += 1
        cursor.take("AS")
        starts[name] = cursor.at + 1
        cursor.parenthesized()
        if not cursor.take(","):
            return CommonTableExpressions(starts, cursor.slice(start, cursor.at), recursive)
