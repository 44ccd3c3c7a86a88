"""SQL and tables by name where the package sqlglot is missing: Spark's own methods, whose errors name the package."""

from __future__ import annotations

import re
from typing import Any

from pyhudi.errors import SetupError
from pyhudi.spark.activation.call_state import FORMATS, call_state
from pyhudi.spark.activation.method_wrapping import Method
from pyhudi.sql.sql_parser_check import MISSING_SQL_PARSER

_HUDI = re.compile(r"\bhudi\b", re.IGNORECASE)


def run_in_spark(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a method of Spark that takes SQL or the name of a table.

    Raises:
        SetupError: It failed, and the text mentions Hudi.
    """
    try:
        return original(target, *args, **kwargs)
    except Exception as error:  # its class depends on the release
        if any(isinstance(text, str) and _HUDI.search(text) for text in (*args, *kwargs.values())):
            raise SetupError(MISSING_SQL_PARSER) from error
        raise


def save_as_named_table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``df.write.saveAsTable``.

    Raises:
        SetupError: The table would be a Hudi table.
    """
    name = kwargs.get("format") or (args[1] if len(args) > 1 else None) or call_state(target).format
    _refuse_hudi(name)
    return original(target, *args, **kwargs)


def using(original: Method, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``df.writeTo(name).using(provider)``. Raises the errors of `save_as_named_table`."""
    _refuse_hudi(args[0] if args else kwargs.get("provider"))
    return original(writer, *args, **kwargs)


def _refuse_hudi(name: Any) -> None:
    if isinstance(name, str) and name.lower() in FORMATS:
        raise SetupError(MISSING_SQL_PARSER)
