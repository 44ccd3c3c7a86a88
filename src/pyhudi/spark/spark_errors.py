"""Errors out of Spark jobs, as the errors that they were when they were raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import isfunction
from typing import TYPE_CHECKING

from pyhudi import errors
from pyhudi.spark.keys.key_generator import key_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyhudi.keygen.key_spec import KeySpec

_REFUSED = re.compile(r"\b(?:Spark)?(?:DateTime|Arithmetic|NumberFormat|Upgrade)Exception\b")
_REASON = re.compile(r"\[[A-Z_.0-9]+\][^\n]*")
_RAISED = re.compile(r"^pyhudi\.errors\.(?P<name>\w+): (?P<text>.*?)(?:\n\s*at |\n\n|\Z)", re.DOTALL | re.MULTILINE)


@contextmanager
def spark_errors(df: DataFrame, spec: KeySpec) -> Iterator[None]:
    """Context manager for Spark actions: errors of pyhudi that a task raised, and unusable keys, come out as
    themselves."""
    with task_errors(), key_errors(df, spec):
        yield


@contextmanager
def task_errors() -> Iterator[None]:
    """Context manager for Spark actions: errors of pyhudi that a task raised come out as themselves."""
    try:
        yield
    except errors.HudiError:
        raise
    except Exception as error:
        found = _RAISED.search(str(error))
        kind = getattr(errors, found["name"], None) if found else None
        if found is None or not isinstance(kind, type) or not issubclass(kind, errors.HudiError):
            raise
        if isfunction(kind.__init__):
            kind = kind.__bases__[0]  # its arguments are lost; the message says it all
        raise kind(found["text"].strip()) from error


@contextmanager
def refused_values(what: str) -> Iterator[None]:
    """Context manager for Spark actions that compute values of a table's rows.

    Raises:
        UnsupportedTableError: Spark's own functions refuse a value, by the settings of the session.
    """
    try:
        with task_errors():
            yield
    except errors.HudiError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if not _REFUSED.search(text):
            raise
        reason = _REASON.search(text)
        raise errors.UnsupportedTableError(
            f"{what} cannot be computed of all rows, as the session refuses a value by its settings "
            "(spark.sql.ansi.enabled=false makes such values null; see also spark.sql.legacy.timeParserPolicy): "
            f"{reason[0] if reason else text.splitlines()[0]}"
        ) from error
