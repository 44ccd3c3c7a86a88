"""Errors of Spark jobs: expressions that fail with exceptions of pyhudi, and their translation back to these."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isfunction

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from pyhudi import errors

_log = logging.getLogger(__name__)
_REFUSED = re.compile(r"\b(?:Spark)?(?:DateTime|Arithmetic|NumberFormat|Upgrade)Exception\b")
_REASON = re.compile(r"\[[A-Z_.0-9]+\][^\n]*")
_RAISED = re.compile(r"^pyhudi\.errors\.(?P<name>\w+): (?P<text>.*?)(?:\n\s*at |\n\n|\Z)", re.DOTALL | re.MULTILINE)


def failure(error: type[errors.HudiError], *message: str | Column) -> Column:
    """Return a column, castable to all types, whose evaluation fails with a message, made of these texts, that
    `task_errors` re-raises as this exception."""
    parts: list[str | Column] = [f"\npyhudi.errors.{error.__name__}: "]
    for part in (*message, "\n\n"):
        if isinstance(part, str) and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return F.raise_error(F.concat(*map(F.lit, parts)))


@contextmanager
def task_errors(complete: Callable[[errors.HudiError], errors.HudiError] | None = None) -> Iterator[None]:
    """Return a context manager for Spark actions that re-raises errors of pyhudi that a task or an expression
    (`failure`) raised as their own exceptions.

    Args:
        complete: Returns the exception to raise in place of such an exception; None: the same.
    """
    try:
        yield
    except errors.HudiError:
        raise
    except Exception as error:
        raised = _raised_error(str(error))
        if raised is None:
            raise
        _log.debug("a task failed", exc_info=error)
        # Stack traces of the virtual machine would hide the message.
        raise (raised if complete is None else complete(raised)) from None


def _raised_error(text: str) -> errors.HudiError | None:
    """Return the exception of pyhudi in the text of an error of Spark; None if there is none."""
    match = _RAISED.search(text)
    kind = getattr(errors, match["name"], None) if match else None
    if match is None or not isinstance(kind, type) or not issubclass(kind, errors.HudiError):
        return None
    if isfunction(kind.__init__):
        kind = kind.__bases__[0]  # the arguments of the exception are lost; the message is complete
    raised: errors.HudiError = kind(match["text"].strip())
    return raised


def is_refused_value(error: BaseException) -> bool:
    """Return True if Spark fails on a value with the settings of the session: in ANSI mode on a division by zero, or
    the cast of a text that is no number."""
    return _REFUSED.search(f"{type(error).__name__}: {error}") is not None


@contextmanager
def refused_values(what: str) -> Iterator[None]:
    """Return a context manager for Spark actions that compute values of a table's rows.

    Raises:
        UnsupportedTableError: Spark's functions fail on a value with the settings of the session.
    """
    try:
        with task_errors():
            yield
    except errors.HudiError:
        raise
    except Exception as error:
        if not is_refused_value(error):
            raise
        text = f"{type(error).__name__}: {error}"
        reason = _REASON.search(text)
        raise errors.UnsupportedTableError(
            f"{what} cannot be computed for all rows: with the settings of the session, Spark fails on a value "
            "(spark.sql.ansi.enabled=false makes such values null; see also spark.sql.legacy.timeParserPolicy): "
            f"{reason[0] if reason else text.splitlines()[0]}"
        ) from error
