"""Conditions implied by a SQL predicate, for pruning files. Spark evaluates the predicate itself; an equivalent
condition can also be evaluated without Spark.

Supported are comparisons of columns with literals of their own types (including ``IN``, ``BETWEEN``, ``LIKE 'p%'`` and
``IS NULL``), combined by ``AND``, ``OR`` and ``NOT``, and functions if there is an index on the same expression.
Nothing is derived from other conditions: arithmetic, comparisons with implicit casts or that depend on settings of the
session, such as its time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from pyhudi.read.filters.sql_conditions import UNKNOWN, SqlCondition, compare, is_in, is_null, like
from pyhudi.read.filters.sql_operands import Known, Literal, Operand, operand_of
from pyhudi.read.filters.sql_tokenizer import END, Token, tokens
from pyhudi.read.filters.terms import Conjunctions

_MAX_NESTED = 40
"""Number of parentheses in each other that are looked into, each of which takes some of Python's stack."""
_COMPARISONS = {"=": "=", "==": "=", "<=>": "<=>", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_ENDS = {"AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "!", ")", ",", *_COMPARISONS}
_TOO_MUCH = {"CASE", "SELECT", "EXISTS", "--", "/*", ";"}


def implied_predicate(text: str, schema: pa.Schema, known: Known | None = None) -> Conjunctions | None:
    """Return conditions implied by the SQL text: every matching row satisfies one conjunction; None: nothing is
    implied.

    Terms on ``known`` expressions have the text of the expression as the column.
    """
    condition = _parsed(text, schema, known or {})
    return None if condition is None or () in condition.if_true else condition.if_true


def equivalent_conditions(text: str, schema: pa.Schema) -> Conjunctions | None:
    """Return conditions equivalent to the SQL text: exactly the matching rows satisfy one conjunction; None: it is not
    fully supported."""
    condition = _parsed(text, schema, {})
    return condition.if_true if condition is not None and condition.exact_if_true else None


def literal_of_other_type(text: str, schema: pa.Schema) -> str:
    """Return why the SQL text is not fully supported, if it compares a column with a literal of another type, which
    only Spark casts; empty for other reasons."""
    condition = _parsed(text, schema, {})
    return "" if condition is None else condition.other_type


def _parsed(text: str, schema: pa.Schema, known: Known) -> SqlCondition | None:
    if "${" in text:  # Replaced by a setting of the session before parsing.
        return None
    sql_tokens = tokens(text)
    if any(token.word in _TOO_MUCH for token in sql_tokens):
        return None
    try:
        return _Parser(sql_tokens, schema, known).parse()
    except _NotUnderstoodError:
        return None


class _NotUnderstoodError(Exception):
    """The text is not a supported condition."""


class _Parser:
    """Recursive-descent parser."""

    def __init__(self, tokens: list[Token], schema: pa.Schema, known: Known) -> None:
        self._tokens, self._schema, self._known, self._at = tokens, schema, known, 0
        self._nested = 0

    def parse(self) -> SqlCondition:
        condition = self._disjunction()
        if self._next is not END:
            raise _NotUnderstoodError
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else END

    def _take(self, *words: str) -> str | None:
        """Consume the next token if it is one of these."""
        word = self._next.word
        if word not in words:
            return None
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._take(word) is None:
            raise _NotUnderstoodError

    def _disjunction(self) -> SqlCondition:
        condition = self._conjunction()
        while self._take("OR"):
            condition |= self._conjunction()
        return condition

    def _conjunction(self) -> SqlCondition:
        condition = self._negation()
        while self._take("AND"):
            condition &= self._negation()
        return condition

    def _negation(self) -> SqlCondition:
        if self._take("NOT", "!"):
            return ~self._negation()
        inner = self._in_parentheses()
        return self._predicate() if inner is None else inner

    def _in_parentheses(self) -> SqlCondition | None:
        """Return a condition in parentheses; None, without consuming tokens, if there is an operand in parentheses or
        none."""
        start = self._at
        if self._nested < _MAX_NESTED and self._take("("):
            self._nested += 1
            try:
                condition = self._disjunction()
                self._expect(")")
                if self._next is END or self._next.word in ("AND", "OR", ")"):
                    return condition
            except _NotUnderstoodError:
                pass
            finally:
                self._nested -= 1
        self._at = start
        return None

    def _predicate(self) -> SqlCondition:
        left = self._operand()
        negated = self._take("NOT", "!") is not None
        word = self._next.word
        if word in _COMPARISONS and not negated:
            self._at += 1
            condition = compare(left, _COMPARISONS[word], self._operand())
        elif word in _TESTS:
            self._at += 1
            condition = _TESTS[word](self, left)
        elif negated:
            raise _NotUnderstoodError
        else:
            condition = compare(left, "=", Literal(True))
        if self._next is not END and self._next.word not in ("AND", "OR", ")"):
            raise _NotUnderstoodError
        return ~condition if negated else condition

    def _between(self, left: Operand) -> SqlCondition:
        low = self._operand()
        self._expect("AND")
        return compare(left, ">=", low) & compare(left, "<=", self._operand())

    def _like(self, left: Operand) -> SqlCondition:
        return like(left, self._operand())

    def _unknown(self, _: Operand) -> SqlCondition:
        self._operand()
        return UNKNOWN

    def _is(self, left: Operand) -> SqlCondition:
        negated = self._take("NOT") is not None
        if self._take("NULL"):
            return ~is_null(left) if negated else is_null(left)
        return self._unknown(left)

    def _among(self, left: Operand) -> SqlCondition:
        self._expect("(")
        values: list[Operand] = [self._operand()]
        while self._take(","):
            values.append(self._operand())
        self._expect(")")
        return is_in(left, values)

    def _operand(self) -> Operand:
        """Return an operand: a column, a literal, or anything else, which ends where the condition continues."""
        start, depth = self._at, 0
        while self._next is not END:
            word = self._next.word
            if depth == 0 and word in _ENDS:
                break
            depth += {"(": 1, ")": -1}.get(word, 0)
            self._at += 1
        operand_tokens = self._tokens[start : self._at]
        if not operand_tokens or depth:
            raise _NotUnderstoodError
        return operand_of(operand_tokens, self._schema, self._known)


_TESTS: Mapping[str, Callable[[_Parser, Operand], SqlCondition]] = {
    "BETWEEN": _Parser._between,
    "IN": _Parser._among,
    "LIKE": _Parser._like,
    "IS": _Parser._is,
    **dict.fromkeys(("ILIKE", "RLIKE", "REGEXP"), _Parser._unknown),
}
"""Parsers of what follows an operand, by its first word."""
