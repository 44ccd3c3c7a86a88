"""Time travel in queries, as an option of the read."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.errors import InvalidOptionError, QueryError
from pyhudi.read.query.query_instants import query_instant
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.spark_statements import collect_statement
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.table_references import Reference

_NEWEST = 3
"""Instants that an error shows."""
_EPOCH = dt.datetime(1970, 1, 1)


def time_travel_options(spark: SparkSession, table: CatalogTable, reference: Reference, args: Any) -> dict[str, str]:
    """Return the options of a read of a table as of the time of a query; none if it has none.

    Args:
        spark: The session.
        table: The table.
        reference: The table in the query.
        args: Values of the parameters of the query.

    Raises:
        QueryError: The time is not an instant, is null, or is a positional parameter.
    """
    if reference.time_travel is None:
        return {}
    value = reference.time_travel.value
    if reference.time_travel.is_version and (value.isdigit() or value[:1] in "'\""):
        _check_version(spark, table, value.strip("'\""))
    if value[:1] in "'\"" and value[1:-1].find(value[0]) < 0:
        return {options.AS_OF_INSTANT.key: value[1:-1]}
    if value.isdigit():
        return {options.AS_OF_INSTANT.key: value}
    if args and "?" in value:
        raise QueryError(f"the time {value} of a time travel query has a parameter by position; name it, as :time")
    kind, instant = collect_statement(spark, f"SELECT typeof({value}), CAST({value} AS STRING)", args)[0]
    if kind in ("timestamp", "timestamp_ntz") and instant is not None:
        # A moment, or a time that means one in the zone of the session. Spark's patterns depend on its parser policy.
        micros = collect_statement(spark, f"SELECT unix_micros(CAST({value} AS TIMESTAMP_LTZ))", args)[0][0]
        instant = _text_of_moment(micros) or instant
    if instant is None:
        raise QueryError(f"the time {value} of a time travel query is null")
    return {options.AS_OF_INSTANT.key: instant}


def _text_of_moment(micros: int) -> str | None:
    """Return a moment with its offset from UTC, which time travel takes in any zone; None in a year beyond 9999."""
    try:
        return f"{(_EPOCH + dt.timedelta(microseconds=micros)).isoformat(' ', 'microseconds')}Z"
    except OverflowError:
        return None


def _check_version(spark: SparkSession, table: CatalogTable, version: str) -> None:
    """Refuse a version that is neither an instant nor a time.

    Raises:
        QueryError: The message has the newest instants.
    """
    try:
        query_instant(version)
    except InvalidOptionError:
        writes = SqlTable.from_catalog(spark, table).client.active_timeline().timeline.writes().completed()
        newest = ", ".join(instant.requested for instant in reversed(list(writes)[-_NEWEST:]))
        raise QueryError(
            f"{table.sql} VERSION AS OF {version}: the versions of a Hudi table are the instants of its commits, of "
            f"which the newest are {newest or 'none'}; CALL show_commits(table => '{'.'.join(table.name)}') lists them"
        ) from None
