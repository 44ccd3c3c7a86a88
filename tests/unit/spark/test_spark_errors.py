"""Errors out of Spark jobs."""

from __future__ import annotations

import pytest

from pyhudi.errors import NotFoundError, QueryError, UnsupportedTableError
from pyhudi.spark.spark_errors import refused_values, task_errors

REFUSED = """An error occurred while calling o7.collectToPython.
: org.apache.spark.SparkException: Job aborted: Lost task 0.0: org.apache.spark.SparkDateTimeException: \
[CANNOT_PARSE_TIMESTAMP] Text 'x' could not be parsed.
\tat org.apache.spark.sql.errors"""
GONE = "Traceback:\npyhudi.errors.NotFoundError: f.parquet is not there\n\n\tat org.apache.spark"


def test_values_that_a_session_refuses() -> None:
    expected = r"to_date\(v\) cannot .*ansi\.enabled=false.*\[CANNOT_PARSE_TIMESTAMP\] Text 'x'"
    with pytest.raises(UnsupportedTableError, match=expected) as error, refused_values("to_date(v)"):
        raise RuntimeError(REFUSED)
    assert "\n" not in str(error.value)
    with pytest.raises(NotFoundError, match=r"f\.parquet is not there"), refused_values("to_date(v)"):
        raise RuntimeError(GONE)
    with pytest.raises(RuntimeError, match="another"), refused_values("to_date(v)"):
        raise RuntimeError("another")


def test_errors_of_tasks_can_be_completed() -> None:
    with (
        pytest.raises(QueryError, match=r"^f\.parquet is not there; 3 rows$"),
        task_errors(lambda error: QueryError(f"{error}; 3 rows")),
    ):
        raise RuntimeError(GONE)
    with pytest.raises(RuntimeError, match="another"), task_errors(lambda error: QueryError(str(error))):
        raise RuntimeError("another")
