"""Tokenizer of SQL conditions, limited to tokens with simple rules in Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pyarrow as pa


class Kind(Enum):
    """Kind of a token."""

    WORD = "word"
    NAME = "quoted name"
    VALUE = "literal"
    ODD = "literal whose meaning depends on settings"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; ``text`` as written (words also in upper case as ``word``), ``value`` of a literal."""

    kind: Kind
    text: str
    value: Any = None

    @property
    def word(self) -> str:
        """The word in upper case, or the sign; empty for other tokens."""
        return self.text.upper() if self.kind in (Kind.WORD, Kind.SIGN) else ""


END = Token(Kind.END, "")

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?P<suffix>BD|[LSYDF])?)(?![\w.])
    |(?P<text>'[^'\\]*')
    |(?P<odd>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=>|<=|>=|<>|!=|==|\|\||--|/\*|.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def tokens(text: str) -> list[Token]:
    """Split SQL text into tokens. A text literal followed by another one is not supported."""
    result: list[Token] = []
    for match in _TOKEN.finditer(text):
        part = match.group()
        if match["space"]:
            continue
        if match["number"]:
            result.append(_number(part, match["suffix"] or ""))
        elif match["text"] or match["odd"]:
            # Adjacent literals are one text, or one with an escaped quote.
            twice = bool(result) and result[-1].kind in (Kind.VALUE, Kind.ODD) and result[-1].text[-1:] in "'\""
            if twice:
                result.pop()
            odd = bool(match["odd"]) or twice
            result.append(Token(Kind.ODD, part) if odd else Token(Kind.VALUE, part, part[1:-1]))
        elif match["name"]:
            result.append(Token(Kind.NAME, part[1:-1].replace("``", "`")))
        else:
            result.append(Token(Kind.WORD if match["word"] else Kind.SIGN, part))
    return result


def _number(text: str, suffix: str) -> Token:
    plain = text[: len(text) - len(suffix)] if suffix else text
    if suffix.upper() == "F":
        return Token(Kind.VALUE, text, pa.scalar(float(plain), pa.float32()).as_py())
    if suffix.upper() == "D" or (suffix.upper() != "BD" and "e" in plain.lower()):
        return Token(Kind.VALUE, text, float(plain))
    number = Decimal(plain)
    return Token(Kind.VALUE, text, number if "." in plain or suffix.upper() == "BD" else int(number))
