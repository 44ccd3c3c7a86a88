"""Identifiers in the spellings that need the session or parameters to be understood, in the plain spelling.

``IDENTIFIER('db.table')``, ``IDENTIFIER(:name)`` and ``IDENTIFIER(:db || '.table')`` (Spark's IDENTIFIER clause), and
names in double quotes where ``spark.sql.ansi.doubleQuotedIdentifiers`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError

_CLAUSE = "IDENTIFIER"


def has_identifier_clause(text: str) -> bool:
    """Return True if a statement has an IDENTIFIER clause; also if it only has the word."""
    return _CLAUSE in text.upper()


def with_plain_identifiers(
    text: str,
    args: object = None,
    *,
    double_quoted: bool = False,
    evaluate: Callable[[str], object] = lambda _: None,
) -> str:
    """Return a statement with names in backquotes in place of IDENTIFIER clauses and of names in double quotes.

    An IDENTIFIER clause stays if its argument has no string as its value, or if the statement cannot be split into
    tokens.

    Args:
        text: The statement.
        args: Values of its named parameters; others than a mapping are ignored.
        double_quoted: Double quotes enclose names, not strings.
        evaluate: Returns the value of an argument that is neither a literal nor a named parameter; None: it is unknown.

    Raises:
        SqlSyntaxError: The string of an IDENTIFIER clause is not a name.
    """
    if not has_identifier_clause(text) and not (double_quoted and '"' in text):
        return text
    try:
        cursor = Cursor(text)
    except NotUnderstoodError:
        return text
    edits: list[TextEdit] = []
    while not cursor.done:
        start, token = cursor.at, cursor.tokens[cursor.at]
        name = _clause_name(cursor, args if isinstance(args, Mapping) else {}, evaluate)
        if name is not None:
            edits.append(TextEdit.of_tokens(token, cursor.tokens[cursor.at - 1], name))
            continue
        cursor.at = start + 1
        if double_quoted and token.kind == "STRING" and text[token.start] == '"':
            edits.append(TextEdit.of_tokens(token, token, _quoted(token.text)))
    return with_edits(text, edits)


def _clause_name(cursor: Cursor, args: Mapping[str, object], evaluate: Callable[[str], object]) -> str | None:
    """Consume an IDENTIFIER clause. Return its name; None if there is no such clause, or its argument is unknown."""
    if not cursor.sees(_CLAUSE, "("):
        return None
    cursor.at += 1
    start, value = cursor.at, _simple_value(cursor, args)
    if value is None:
        cursor.at = start
        try:
            value = evaluate(cursor.parenthesized())
        except SqlSyntaxError:
            return None
    return _as_name(value) if isinstance(value, str) else None


def _simple_value(cursor: Cursor, args: Mapping[str, object]) -> object:
    """Consume a literal or a named parameter in parentheses. Return its value; None for anything else."""
    value: object = None
    cursor.expect("(")
    if cursor.kind() == "STRING":
        value = cursor.string()
    elif cursor.take(":") and not cursor.done:
        value = args.get(cursor.tokens[cursor.at].text)
        cursor.at += 1
    return value if cursor.take(")") else None


def _as_name(value: str) -> str:
    try:
        cursor = Cursor(value)
        parts = cursor.name()
        cursor.finish()
    except SqlSyntaxError as e:
        raise SqlSyntaxError(f"IDENTIFIER({value!r}) is not a name") from e
    return ".".join(_quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return f"`{part.replace('`', '``')}`"
