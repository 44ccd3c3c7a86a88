"""Edits of SQL text at positions of its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyhudi.sql.token_cursor import Token


class TextEdit(NamedTuple):
    """New text for the range from ``start`` to ``end`` (exclusive) of a text, in characters."""

    start: int
    end: int
    text: str

    @classmethod
    def of_tokens(cls, first: Token, last: Token, text: str) -> TextEdit:
        """Replace the tokens from one to another, and everything between them."""
        return cls(first.start, last.end + 1, text)


def with_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Return a text with other texts in place of some ranges of it, which do not overlap.

    >>> with_edits("SELECT a FROM t", [TextEdit(7, 8, "b"), TextEdit(14, 15, "u")])
    'SELECT b FROM u'
    """
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
