"""SQL text as sqlglot's tokens, with a cursor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pyhudi.errors import SetupError, SqlSyntaxError

_T = TypeVar("_T")
NAME_KINDS = frozenset({"VAR", "IDENTIFIER"})
"""Kinds of tokens that are names: unquoted and quoted ones."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")

OPERATORS = frozenset(
    {"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "DIV", "|", "||", "&", "^", "~", "!"}
    | {"AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "ANY", "SOME", "ALL", "BETWEEN", "IS", "EXISTS"}
    | {"DISTINCT", "ESCAPE", "CASE", "WHEN", "THEN", "ELSE", ".", ",", "::"}
)
"""Words of an expression after which it is not complete."""
_BEFORE_OPERANDS = OPERATORS - {"IN", "IS", "ANY", "SOME", "ALL", "EXISTS", "DISTINCT"}


class NotUnderstoodError(SqlSyntaxError):
    """A text that sqlglot cannot parse; Spark may be able to."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token: sqlglot's name of its kind, its value, and its start and end (inclusive) in the text."""

    kind: str
    text: str
    start: int
    end: int


@cache
def _spark_dialect() -> Any:
    try:
        from sqlglot.dialects import Spark
    except ImportError as e:
        raise SetupError("SQL on Hudi tables requires sqlglot: pip install 'pyhudi[sql]'") from e
    return Spark()


# sqlglot keeps the rest of some statements (SHOW, CALL) as one token, but only at the start of a text.
_PREFIX = "( "


def _tokens(text: str) -> Iterator[Token]:
    shift = len(_PREFIX)
    for raw in _spark_dialect().tokenize(_PREFIX + text)[1:]:
        kind, value, start = raw.token_type.name, str(raw.text), raw.start - shift
        if kind in ("STRING", "IDENTIFIER") or " " not in value.strip():
            yield Token(kind, value, start, raw.end - shift)
            continue
        # Keywords of several words.
        written = text[start : raw.end - shift + 1]
        at = 0
        for word in written.split():
            at = written.index(word, at)
            yield Token("VAR", word, start + at, start + at + len(word) - 1)
            at += len(word)


class Cursor:
    """A position between the tokens of a text.

    Args:
        text: The SQL.

    Raises:
        NotUnderstoodError: The text cannot be split into tokens.
    """

    def __init__(self, text: str) -> None:
        from sqlglot.errors import SqlglotError

        self.text = text
        try:
            parsed = list(_tokens(text))
        except SqlglotError as e:
            raise NotUnderstoodError(str(e)) from e
        while parsed and parsed[-1].kind == "SEMICOLON":
            parsed.pop()
        self.tokens = parsed
        self.at = 0

    # --- lookahead -------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """True if there are no more tokens."""
        return self.at >= len(self.tokens)

    def word(self, ahead: int = 0) -> str:
        """Return a following token in upper case; empty for texts, quoted names and the end."""
        at = self.at + ahead
        if at >= len(self.tokens) or self.tokens[at].kind in ("STRING", "IDENTIFIER"):
            return ""
        return self.tokens[at].text.upper()

    def kind(self, ahead: int = 0) -> str:
        """Return the kind of a following token; empty at the end."""
        at = self.at + ahead
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def sees(self, *words: str) -> bool:
        """Return True if these words come next."""
        return all(self.word(number) == word for number, word in enumerate(words))

    def words(self, count: int) -> str:
        """Return the next few words, for messages."""
        return " ".join(token.text for token in self.tokens[self.at : self.at + count])

    # --- consuming -------------------------------------------------------------------------------------------------

    def take(self, *words: str) -> bool:
        """Consume these words if they come next. Return False otherwise."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Consume these words.

        Raises:
            SqlSyntaxError: Other tokens come next.
        """
        if not self.take(*words):
            self.fail(" ".join(words))

    def fail(self, expected: str) -> None:
        """Raise an error for the next token.

        Raises:
            SqlSyntaxError: Always.
        """
        actual = "the end" if self.done else repr(self.tokens[self.at].text)
        raise SqlSyntaxError(f"expected {expected} but found {actual} in: {self.text.strip()}")

    def identifier(self) -> str:
        """Consume a name, without its backquotes."""
        if self.done or self.tokens[self.at].kind in ("STRING", "NUMBER"):
            self.fail("a name")
        token = self.tokens[self.at]
        if token.kind != "IDENTIFIER" and not (token.text[:1].isalnum() or token.text[:1] == "_"):
            self.fail("a name")
        self.at += 1
        return token.text

    def name(self) -> tuple[str, ...]:
        """Consume a name of parts separated by dots."""
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        return tuple(parts)

    def string(self) -> str:
        """Consume a quoted text."""
        if self.done or self.tokens[self.at].kind != "STRING":
            self.fail("a text in quotes")
        value = ""
        while not self.done and self.tokens[self.at].kind == "STRING":  # Adjacent literals are one text.
            value += self.tokens[self.at].text
            self.at += 1
        return value

    def literal(self) -> str:
        """Consume a text, a number or a word as the value of a property."""
        if self.done:
            self.fail("a value")
        if self.tokens[self.at].kind == "STRING":
            return self.string()
        negative = "-" if self.take("-") else ""
        token = self.tokens[self.at]
        self.at += 1
        return negative + token.text

    def key(self) -> str:
        """Consume the key of a property: a text, or words separated by dots and dashes."""
        if self.kind() == "STRING":  # alone: the value may be the text after it
            self.at += 1
            return self.tokens[self.at - 1].text
        parts = [self.identifier()]
        while self.sees(".") or self.sees("-"):
            parts += [self.tokens[self.at].text, self.tokens[self.at + 1].text]
            self.at += 2
        return "".join(parts)

    def until(self, *ends: str) -> str:
        """Consume everything before one of some words, outside of parentheses and CASE … END, or the end. Return its
        text. After a dot such a word is a name."""
        start, depth, cases = self.at, 0, 0
        while not self.done:
            word = self.word()
            if not depth and not cases and word in ends and not (self.at > start and self.word(-1) == "."):
                break
            if word in _OPENING:
                depth += 1
            elif word in _CLOSING:
                if not depth:
                    break
                depth -= 1
            elif word == "CASE" and self.word(-1) != ".":
                cases += 1
            elif word == "END" and cases and not self._is_operand():
                cases -= 1
            self.at += 1
        return self.slice(start, self.at)

    def _is_operand(self) -> bool:
        """Return True if the next word is an operand in the expression before it, whatever it means elsewhere: ``end``
        is a column in ``CASE WHEN end > 1 THEN t.end END``."""
        before = self.word(-1) if self.at else ""
        if before != "." and self.at > 1 and self.word(-2) == ".":
            return False  # a column that is called like an operator
        return before in _BEFORE_OPERANDS or before in _OPENING

    def parenthesized(self) -> str:
        """Consume the content of parentheses. Return its text."""
        self.expect("(")
        inner = self.until()
        self.expect(")")
        return inner

    def rest(self) -> str:
        """Consume everything up to the end. Return its text."""
        start, self.at = self.at, len(self.tokens)
        return self.slice(start, self.at)

    def slice(self, start: int, end: int) -> str:
        """Return the text of the tokens from ``start`` to before ``end``."""
        if start >= end:
            return ""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end + 1]

    def finish(self) -> None:
        """Check that the statement ends here.

        Raises:
            SqlSyntaxError: Further tokens follow.
        """
        if not self.done:
            self.fail("the end of the statement")

    def finished(self, statement: _T) -> _T:
        """Return a statement after which nothing may follow.

        Raises:
            SqlSyntaxError: Further tokens follow.
        """
        self.finish()
        return statement


def literal_text(sql: str) -> str | None:
    """Return the value of a SQL text that is a quoted text; None for other expressions."""
    cursor = Cursor(sql)
    if cursor.kind() != "STRING":
        return None
    value = cursor.string()
    return value if cursor.done else None
