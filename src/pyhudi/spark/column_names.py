"""Names of columns, resolved in a schema and quoted for Spark, and SQL texts as Columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from pyhudi.errors import HudiError, RecordKeyError
from pyhudi.schema.name_resolution import matches_ignoring_case
from pyhudi.spark.spark_types import resolve_spark_path, type_at

_NO_SIGNS = re.compile(
    r"""r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""",
    re.DOTALL | re.IGNORECASE,
)
"""Texts, quoted names and comments in SQL."""
_PARENTHESES = re.compile(r"[()]")
_QUERY = re.compile(r"\s*(?:SELECT|WITH|FROM|VALUES|TABLE)\b(?!\s*[=<>.])", re.IGNORECASE)
"""Beginning of a query, but not that of a comparison of a column that is called so."""


def resolve(
    schema: StructType, name: str, role: str, error: type[HudiError] = RecordKeyError
) -> tuple[Column, DataType]:
    """Return the column that a field name refers to, and its type; dots separate the fields of structs.

    Args:
        schema: Columns of the rows.
        name: Name of the field.
        role: Role of the field in the error message.
        error: Class of the error.

    Raises:
        HudiError: There is no such column. The class of the error is ``error``.
    """
    path = resolve_spark_path(name, schema)
    if path is None:
        raise error(_missing(schema, name, role))
    return F.col(quoted(path)), type_at(path, schema)


def _missing(schema: StructType, name: str, role: str) -> str:
    near = matches_ignoring_case(name, schema.names)
    hint = f"; did you mean {near[0]!r} (names are case-sensitive)?" if near else ""
    return f"there is no column {name!r} for the {role}; the columns are: {', '.join(schema.names)}{hint}"


def quoted(parts: Sequence[str]) -> str:
    """Return the parts of a column name quoted for Spark, so that each is taken literally."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quoted_name(name: str) -> str:
    """Return the name of a top-level column quoted for Spark."""
    return quoted([name])


def select_names(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Select top-level columns by name. In PySpark, ``select`` makes a Column of each name by several calls to the JVM,
    which takes half a millisecond of the processor; SQL text takes a quarter of that.

    For columns of tables, whose names are words. In SQL text, others may be patterns, by the session's setting
    ``spark.sql.parser.quotedRegexColumnNames``.
    """
    return frame.selectExpr(*map(quoted_name, names))


def expression(text: str) -> Column:
    """Return SQL text as a Column. Spark alone would take the last word of an incomplete one for an alias, and evaluate
    the rest: of ``id > 0 AND``, for instance, to which a variable without a value has not added a condition.

    Args:
        text: An expression, without an alias.

    Raises:
        ParseException: The text is no complete expression, or has an alias.
    """
    # in parentheses an alias is an error; on another line, as the text may end with a comment. Spark 4 parses it where
    # it is used, so its parser cannot tell here what only parentheses make valid
    return F.expr(f"({text}\n)" if _means_the_same_in_parentheses(text) else text)


def _means_the_same_in_parentheses(text: str) -> bool:
    """Return True unless parentheses around a text would not enclose the whole of it, as of ``a) OR (b``, or would make
    a query a subquery."""
    signs, depth = _NO_SIGNS.sub(" ", text), 0
    if _QUERY.match(signs):
        return False
    for sign in _PARENTHESES.findall(signs):
        depth += 1 if sign == "(" else -1
        if depth < 0:
            return False
    return depth == 0
