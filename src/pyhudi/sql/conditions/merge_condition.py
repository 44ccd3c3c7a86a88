"""Analysis of the condition of a MERGE, and of the values in its clauses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyhudi.sql.sql_parser import has_sql_parser, syntax_tree

_NAME = r"[^\W\d]\w*\.[^\W\d]\w*"
_CALLED = re.compile(rf"=\(({_NAME}), ({_NAME})\)")
_JOINING = re.compile(r"(?:and\(|, |\))*")
_WRITTEN = re.compile(rf"{_NAME} = {_NAME}(?: AND {_NAME} = {_NAME})*")


def equality_text(printed: str) -> str | None:
    """Return the SQL text of a Column that only equates columns of two tables with each other; None for others.

    Args:
        printed: The Column as Spark 4 prints it: ``Column<'=(t.id, s.id)'>``, or the text of ``functions.expr``. Spark
            3.5 prints ``(t.id = s.id)`` also for a column that is compared with the text ``'s.id'``.
    """
    text = printed.removeprefix("Column<'").removesuffix("'>")
    if _WRITTEN.fullmatch(text):
        return text
    rest, count = _CALLED.subn("", text)
    if not count or not _JOINING.fullmatch(rest):
        return None
    return " AND ".join(f"{_quoted(one)} = {_quoted(other)}" for one, other in _CALLED.findall(text))


def _quoted(column: str) -> str:
    """Return a qualified name with backquotes: a Column may have reserved words and letters that names in SQL may not
    have without them."""
    return "`" + column.replace(".", "`.`") + "`"


@dataclass(frozen=True, slots=True)
class MergeSides:
    """Names that the condition of a MERGE can have, in lower case.

    Attributes:
        target: Name of the table.
        target_columns: Its columns, without those whose names differ in case alone.
        source_columns: Columns of the source, without names that it has several times, as a join has.
        source: Name of the source; None: unknown.
    """

    target: str
    target_columns: frozenset[str]
    source_columns: frozenset[str]
    source: str | None

    @classmethod
    def from_columns(
        cls, target: str, target_columns: Iterable[str], source_columns: Iterable[str], source: str | None = None
    ) -> MergeSides:
        """Return the sides with these names, whatever their case."""
        counts = (Counter(name.lower() for name in names) for names in (target_columns, source_columns))
        in_target, in_source = (frozenset(name for name, count in some.items() if count == 1) for some in counts)
        return cls(target.lower(), in_target, in_source, None if source is None else source.lower())

    def has_target(self, qualifier: str, name: str) -> bool:
        """Return True if ``qualifier.name`` is a column of the table."""
        return qualifier == self.target and name in self.target_columns

    def has_source(self, qualifier: str, name: str) -> bool:
        """Return True if ``qualifier.name`` is certainly a column of the source, and no field of a struct."""
        if qualifier == self.target or name not in self.source_columns:
            return False
        return qualifier == self.source or qualifier not in self.source_columns | self.target_columns


def value_of_source(text: str, sides: MergeSides, *, inserts: bool) -> str | None:
    """Return a text by which values of the source can be compared, if an expression has no other columns.

    Args:
        text: SQL such as ``s.fare`` or ``round(s.fare, 2)``.
        sides: The table and the source.
        inserts: It is of a clause for source rows without a match, in which a name without qualifier is the source's.

    Returns:
        That of `column_of_source` for a column, otherwise ``text``. None: the expression has a column that may not be
        the source's, or a subquery, or sqlglot is missing.
    """
    tree = syntax_tree(text) if has_sql_parser() else None
    if tree is None:
        return None
    from sqlglot import exp

    columns = tree.find_all(exp.Column)
    if tree.find(exp.Query) or not all(_is_of_source(column, sides, inserts=inserts) for column in columns):
        return None
    return column_of_source(tree.name) if isinstance(tree, exp.Column) else text


def _is_of_source(column: Any, sides: MergeSides, *, inserts: bool) -> bool:
    """Return True if a column is certainly one of the source."""
    if len(column.parts) == 1:
        name = column.name.lower()
        return name in sides.source_columns and (inserts or name not in sides.target_columns)
    qualified = _qualified_name(column)
    return qualified is not None and sides.has_source(*qualified)


def column_of_source(name: str) -> str:
    """Return the text by which the value of a column of the source is compared with other values."""
    return "`" + name.lower() + "`"


def equated_columns(on: str, sides: MergeSides) -> frozenset[str] | None:
    """Return the columns that a condition requires to be equal on both sides, if it has no other conditions.

    Args:
        on: SQL such as ``t.id = s.id AND t.day = s.day``.
        sides: The table and the source.

    Returns:
        Names in lower case; None if there is another condition, or a column with another name on the other side, or
        sqlglot is missing.
    """
    pairs = equalities(on, sides)
    if pairs is None or any(target != source for target, source in pairs):
        return None
    return frozenset(target for target, _ in pairs)


@lru_cache(maxsize=64)  # a MERGE asks several times about its condition
def equalities(on: str, sides: MergeSides) -> frozenset[tuple[str, str]] | None:
    """Return the pairs of columns that a condition requires to be equal, if it has no other conditions.

    Args:
        on: SQL such as ``t.id = s.number AND t.day = s.day``.
        sides: The table and the source.

    Returns:
        Names in lower case, that of the target first; None if there is another condition, or sqlglot is missing.
    """
    tree = syntax_tree(on) if has_sql_parser() else None
    if tree is None:
        return None
    from sqlglot import exp

    pairs: set[tuple[str, str]] = set()
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        pair = _equality(part.unnest(), sides)
        if pair is None:
            return None
        pairs.add(pair)
    return frozenset(pairs)


def _equality(part: Any, sides: MergeSides) -> tuple[str, str] | None:
    from sqlglot import exp

    if not isinstance(part, exp.EQ):
        return None
    one, other = _qualified_name(part.this), _qualified_name(part.expression)
    if one is None or other is None:
        return None
    for target, source in ((one, other), (other, one)):
        if sides.has_target(*target) and sides.has_source(*source):
            return target[1], source[1]
    return None


def _qualified_name(side: Any) -> tuple[str, str] | None:
    """Return the qualifier and the name of a column, in lower case; None if it has no or several qualifiers."""
    from sqlglot import exp

    if not isinstance(side, exp.Column) or len(side.parts) != 2:
        return None
    return side.table.lower(), side.name.lower()
