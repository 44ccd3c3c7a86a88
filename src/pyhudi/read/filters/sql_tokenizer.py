"""SQL text of a condition cut into tokens, as far as Spark's rules for them are simple."""

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
    """A token; ``text`` as it is written (words also in capitals as ``word``), ``value`` of a literal."""

    kind: Kind
    text: str
    value: Any = None

    @property
    def word(self) -> str:
        """A word in capitals; empty for everything else but signs."""
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
    """Cut SQL text; a text literal that another one follows is one whose meaning is not looked into."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        part = match.group()
        if match["space"]:
            continue
        if match["number"]:
            found.append(_number(part, match["suffix"] or ""))
        elif match["text"] or match["odd"]:
            # texts that follow each other are one text, or one with a quote in it
            twice = bool(found) and found[-1].kind in (Kind.VALUE, Kind.ODD) and found[-1].text[-1:] in "'\""
            if twice:
                found.pop()
            odd = bool(match["odd"]) or twice
            found.append(Token(Kind.ODD, part) if odd else Token(Kind.VALUE, part, part[1:-1]))
        elif match["name"]:
            found.append(Token(Kind.NAME, part[1:-1].replace("``", "`")))
        else:
            found.append(Token(Kind.WORD if match["word"] else Kind.SIGN, part))
    return found


def _number(text: str, suffix: str) -> Token:
    plain = text[: len(text) - len(suffix)] if suffix else text
    if suffix.upper() == "F":
        return Token(Kind.VALUE, text, pa.scalar(float(plain), pa.float32()).as_py())
    if suffix.upper() == "D" or (suffix.upper() != "BD" and "e" in plain.lower()):
        return Token(Kind.VALUE, text, float(plain))
    number = Decimal(plain)
    return Token(Kind.VALUE, text, number if "." in plain or suffix.upper() == "BD" else int(number))
