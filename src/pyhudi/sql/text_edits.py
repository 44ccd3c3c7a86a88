"""Edits of SQL text at positions of its tokens."""

from __future__ import annotations

from collections.abc import Iterable


def with_edits(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other texts in place of some ranges of it.

    Args:
        text: The text.
        edits: Start, end (exclusive) and new text of each range; ranges do not overlap.

    >>> with_edits("SELECT a FROM t", [(7, 8, "b"), (14, 15, "u")])
    'SELECT b FROM u'
    """
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
