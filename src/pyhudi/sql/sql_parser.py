"""The package that parses SQL, which only SQL and tables by name require: a check for it, and trees of SQL texts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pyhudi.errors import SetupError

MISSING_SQL_PARSER = (
    "SQL on Hudi tables, and Hudi tables by name, require the package sqlglot, which is not installed: pip install "
    "'pyhudi[sql]'"
)


def has_sql_parser() -> bool:
    """Return True if sqlglot is installed."""
    return find_spec("sqlglot") is not None


def check_sql_parser() -> None:
    """Check that sqlglot is installed.

    Raises:
        SetupError: It is not.
    """
    if not has_sql_parser():
        raise SetupError(MISSING_SQL_PARSER)


def syntax_tree(text: str) -> Any:
    """Return the tree of a query or an expression; None if sqlglot cannot parse it."""
    import sqlglot

    try:
        return sqlglot.parse_one(text, read="spark")
    except Exception:  # of sqlglot, or of Python where its parser recurses too deep
        return None
