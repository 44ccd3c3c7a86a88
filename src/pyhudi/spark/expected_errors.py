"""Errors of Spark that answer a question, such as whether there is a view of a name.

PySpark 4 logs every error of a query as it is made, also those that are caught: a statement that succeeds would print
lines of ERROR.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_expected: ContextVar[bool] = ContextVar("expected", default=False)


@contextmanager
def expected_errors() -> Iterator[None]:
    """Keep PySpark from logging the errors of this thread inside of the block."""
    _filter_logs()
    token = _expected.set(True)
    try:
        yield
    finally:
        _expected.reset(token)


@cache
def _filter_logs() -> None:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # Spark 3.5 logs none of them
        return
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_unexpected)


def _is_unexpected(_: logging.LogRecord) -> bool:
    return not _expected.get()
