"""Qualifiers of columns in queries: the names of tables before them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pyhudi.sql.relation_tokens import ColumnParts
from pyhudi.sql.statements import Name


class Qualifier(NamedTuple):
    """A qualifier of a column: its parts in lower case, its start in the text, and start and end of its last part."""

    parts: Name
    start: int
    last: int
    end: int

    @classmethod
    def of_column(cls, column: ColumnParts, count: int) -> Qualifier:
        """Return the first parts of a column."""
        (_, start, _), (_, last, end) = column[0], column[count - 1]
        return cls(tuple(text for text, *_ in column[:count]), start, last, end)


@dataclass(frozen=True, slots=True)
class Qualifiers:
    """Qualifiers of columns that name a table.

    Attributes:
        own: Those that are its name in the query, if this has several parts.
        longer: Those that end with its last name and are longer than its name in the query; they may be its full name.
    """

    own: tuple[Qualifier, ...] = ()
    longer: tuple[Qualifier, ...] = ()

    @classmethod
    def of_table(cls, name: Name, columns: Iterable[ColumnParts]) -> Qualifiers:
        """Return the qualifiers of these columns that name a table."""
        words, own, longer = tuple(part.lower() for part in name), [], []
        for column in columns:
            texts = tuple(text for text, *_ in column)
            if len(words) > 1 and len(texts) > len(words) and texts[: len(words)] == words:
                own.append(Qualifier.of_column(column, len(words)))
            if words[-1] in texts[len(words) : -1]:
                longer.append(Qualifier.of_column(column, texts.index(words[-1], len(words)) + 1))
        return cls(tuple(own), tuple(longer))
