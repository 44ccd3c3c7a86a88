"""Names in SQL conditions that are no columns, for error messages."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa

from pyhudi.read.filters.sql_tokenizer import END, Kind, Token, tokens
from pyhudi.schema.name_resolution import matches_ignoring_case

_BEFORE = {"(", "AND", "OR", "NOT"}
_SIGNS = {"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="}
_BEHIND = {")", "AND", "OR"}
_AFTER = {*_SIGNS, "IN", "LIKE", "BETWEEN", "IS"}
_KEYWORDS = {"AND", "OR", "NOT", "TRUE", "FALSE", "NULL"}
_FUNCTIONS = {"CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_USER"}
"""Functions that SQL calls without brackets."""


def unknown_column(text: str, schema: pa.Schema) -> str | None:
    """Return the first name on the left of a comparison that is no column of the schema, in any case of letters.

    None: there is none.
    """
    before = END
    for token, after in pairwise([*tokens(text), END]):
        is_left = _may_precede(before) and after.word in _AFTER
        if is_left and _is_name(token) and not matches_ignoring_case(token.text, schema.names):
            return token.text
        before = token
    return None


def unquoted_text(text: str, schema: pa.Schema) -> str | None:
    """Return the first word on the right of a comparison that is no column of the schema: a text without quotes.

    None: there is none.
    """
    found = tokens(text)
    for sign, token, after in zip(found, found[1:], [*found[2:], END], strict=False):
        is_right = sign.word in _SIGNS and (after is END or after.word in _BEHIND)
        is_word = token.kind is Kind.WORD and _is_name(token)
        if is_right and is_word and not matches_ignoring_case(token.text, schema.names):
            return token.text
    return None


def _may_precede(token: Token) -> bool:
    return token is END or token.word in _BEFORE


def _is_name(token: Token) -> bool:
    return token.kind is Kind.NAME or (token.kind is Kind.WORD and token.word not in _KEYWORDS | _FUNCTIONS)
