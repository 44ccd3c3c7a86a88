"""Procedures that sync a table to a Hive metastore, and compare two tables after a sync."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Self

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.catalog_sync.table_sync import sync_table
from pyhudi.config import Options, options
from pyhudi.errors import OptionWithoutEffectWarning, QueryError, warn
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.hive_settings import with_hive_settings
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.queries.functions.table_functions import locate
from pyhudi.sql.token_cursor import Cursor
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import total

_OPTIONS = {
    "metastore_uri": options.HIVE_SYNC_METASTORE_URIS.key,
    "use_jdbc": options.HIVE_SYNC_USE_JDBC.key,
    "mode": options.HIVE_SYNC_MODE.key,
    "partition_fields": options.HIVE_SYNC_PARTITION_FIELDS.key,
    "partition_extractor_class": options.PARTITION_EXTRACTOR_CLASS.key,
    "strategy": options.HIVE_SYNC_TABLE_STRATEGY.key,
    "sync_incremental": options.META_SYNC_INCREMENTAL.key,
}
_OF_HIVE_SERVER = ("username", "password")
_ALL_ROWS, _LATEST = "complete", "latestPartitions"
_DAY = "datestr"


def hive_sync(spark: SparkSession, arguments: Arguments) -> Rows:
    """Sync a table to the Hive metastore, by default in the database of its name."""
    for name in _OF_HIVE_SERVER:
        if arguments.values[name]:
            warn(f"{name} has no effect: the metastore is asked, not HiveServer2", OptionWithoutEffectWarning)
    sync_options = {key: value for key, value in arguments.as_options(_OPTIONS).items() if value}
    client, opts = arguments.opened(spark, sync_options)
    in_database = _in_database(spark, str(arguments.text("table")), opts)
    sync_table(client, with_hive_settings(spark, in_database), new_timestamps=True)
    return [("hive sync success.",)]


def _in_database(spark: SparkSession, table: str, opts: Options) -> Options:
    """Return the options with the database of a table's name, unless they name one or the table is given by a path."""
    if opts.is_set(options.HIVE_SYNC_DATABASE) or "/" in table:
        return opts
    *database, _ = Cursor(table).name()
    named = database[-1] if database else spark.catalog.currentDatabase()
    return Options.parse({**opts, options.HIVE_SYNC_DATABASE.key: named})


@dataclass(frozen=True, slots=True)
class _Side:
    """A table that is compared: its name, number of rows, and timeline."""

    name: str
    rows: int
    active: ActiveTimeline

    @classmethod
    def of_argument(cls, spark: SparkSession, arguments: Arguments, name: str) -> Self:
        location = locate(spark, str(arguments.text(name)))
        settings = session_settings(spark, location)
        client = TableMetaClient.open(location, Options.parse(settings))
        return cls(client.config.name, _count(spark, location, settings, arguments), client.active_timeline())

    @property
    def latest(self) -> str:
        last = self.active.timeline.writes().last
        return "0" if last is None else last.requested

    def new_rows_after(self, requested: str) -> int | None:
        """Number of rows that commits after an instant inserted; None: there is no such commit."""
        later = self.active.timeline.writes().after(requested)
        if not later:
            return None
        stats = [self.active.commit_metadata(instant).stats for instant in later.completed()]
        return sum(total(one, "numWrites") - total(one, "numUpdateWrites") for one in stats)


def _count(spark: SparkSession, location: str, settings: dict[str, str], arguments: Arguments) -> int:
    frame = load_table(spark, location, settings)
    if arguments.text("mode") == _LATEST:
        day = resolve_name(_DAY, frame.columns)
        if day is None:
            raise QueryError(
                f"mode => {_LATEST!r} counts the rows of the latest days by the column {_DAY!r}, which {location!r} "
                f"lacks; use {_ALL_ROWS!r}"
            )
        today = dt.date.today()
        first = today - dt.timedelta(days=arguments.number("partition_cnt") or 0)
        frame = frame.where((F.col(day) > first.isoformat()) & (F.col(day) <= today.isoformat()))
    return int(frame.count())


def sync_validate(spark: SparkSession, arguments: Arguments) -> Rows:
    """Compare the numbers of rows of two tables, and count the rows that the one behind has still to take over. Spark
    counts the rows; no HiveServer2 is asked.

    Raises:
        QueryError: The mode is unknown, or a table has no column of the day.
    """
    mode = arguments.text("mode")
    if mode not in (_ALL_ROWS, _LATEST):
        raise QueryError(f"mode is {_ALL_ROWS!r} or {_LATEST!r}, not {mode!r}")
    source, target = (_Side.of_argument(spark, arguments, name) for name in ("src_table", "dst_table"))
    ahead, behind = (target, source) if target.latest > source.latest else (source, target)
    difference = f"count({ahead.name}) - count({behind.name}) == {ahead.rows - behind.rows}"
    new = ahead.new_rows_after(behind.latest)
    catch_up = "" if new is None else f". Catach up count is {new}"  # spelled as in Apache Hudi
    return [(f"Count difference now is {difference}{catch_up}",)]


PROCEDURES: dict[str, Procedure] = {"hive_sync": hive_sync, "sync_validate": sync_validate}
