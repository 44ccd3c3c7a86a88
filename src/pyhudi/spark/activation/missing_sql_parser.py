"""SQL and tables by name where the package sqlglot is missing: Spark's own methods, whose errors name the package."""

from __future__ import annotations

import re
from typing import Any

from pyhudi.errors import SetupError
from pyhudi.spark.activation.method_wrapping import MethodCall
from pyhudi.spark.activation.recorded_settings import FORMATS, recorded_settings
from pyhudi.sql.sql_parser import MISSING_SQL_PARSER

_HUDI = re.compile(r"\bhudi\b", re.IGNORECASE)


def run_in_spark(call: MethodCall) -> Any:
    """Run a method of Spark that takes SQL or the name of a table.

    Raises:
        SetupError: It failed, and the text mentions Hudi.
    """
    try:
        return call.run()
    except Exception as error:  # its class depends on the release
        if any(isinstance(text, str) and _HUDI.search(text) for text in (*call.args, *call.kwargs.values())):
            raise SetupError(MISSING_SQL_PARSER) from error
        raise


def save_as_named_table(call: MethodCall) -> Any:
    """``df.write.saveAsTable``.

    Raises:
        SetupError: The table would be a Hudi table.
    """
    name = (
        call.kwargs.get("format")
        or (call.args[1] if len(call.args) > 1 else None)
        or recorded_settings(call.target).format
    )
    _refuse_hudi(name)
    return call.run()


def using(call: MethodCall) -> Any:
    """``df.writeTo(name).using(provider)``. Raises the errors of `save_as_named_table`."""
    _refuse_hudi(call.args[0] if call.args else call.kwargs.get("provider"))
    return call.run()


def _refuse_hudi(name: Any) -> None:
    if isinstance(name, str) and name.lower() in FORMATS:
        raise SetupError(MISSING_SQL_PARSER)
