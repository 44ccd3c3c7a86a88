"""Check for the package that parses SQL, which only SQL and tables by name require."""

from __future__ import annotations

from importlib.util import find_spec

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
