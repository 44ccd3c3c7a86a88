"""Base of the services of a table: its path and options, and the selection of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.config import Options
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metrics.publish import check_metrics_options
from pyhudi.spark.session import session_if_any
from pyhudi.table.meta_client import TableMetaClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ServiceBase:
    """One table, which each service opens again."""

    def __init__(self, path: str, options: Options) -> None:
        self._path = path
        self._options = options

    def _open(self, options: Mapping[str, object] | None) -> tuple[TableMetaClient, Options]:
        """Open the current table, with the options in addition to its own."""
        opts = Options.parse({**self._options, **(options or {})})
        check_metrics_options(opts)
        client = TableMetaClient.open(self._path, opts)
        return client, client.config.validate_against(opts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"


def file_stats_reader(spark: SparkSession | None) -> FileStatsReader:
    """Return the reader of a table's files for index builds: ``spark``, otherwise the active session, otherwise
    threads."""
    session = spark or session_if_any()
    if session is None:
        return LOCAL
    from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader

    return SparkFileStatsReader(session)
