"""``spark.read.format("hudi").options(…).load(path)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options
from pyhudi.config.misspelled_options import refuse_other_formats
from pyhudi.read.query.query import Query
from pyhudi.read.query.table_location import open_table
from pyhudi.spark.read.dataframe_reader import read, read_pruned
from pyhudi.storage.storage_factory import HADOOP_S3_KEYS
from pyhudi.table.meta_client import TableMetaClient

_REQUEST = "_pyhudi_load_request"


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Arguments with which a DataFrame was loaded: the path and the options."""

    path: str
    options: Mapping[str, object]

    def load(self, spark: SparkSession) -> DataFrame:
        """Load the DataFrame."""
        frame = load_table(spark, self.path, self.options)
        frame.__dict__[_REQUEST] = self
        return frame


def load_request(frame: DataFrame) -> LoadRequest | None:
    """Return the arguments with which a DataFrame was loaded; None for other DataFrames."""
    request: LoadRequest | None = frame.__dict__.get(_REQUEST)
    return request


@dataclass(frozen=True, slots=True)
class TableQuery:
    """A query of a table that was opened for it.

    Attributes:
        client: The table.
        query: The query.
        opts: Options of the read.
    """

    client: TableMetaClient
    query: Query
    opts: Options

    @classmethod
    def open(cls, spark: SparkSession, path: str, options: Mapping[str, object] | None) -> TableQuery:
        """Open the table of a query. Arguments and errors as of `load_table`."""
        refuse_other_formats(options or {})
        opts = Options.parse({**session_settings(spark, path), **(options or {})})
        client, subpath = open_table(path, opts)
        return cls(client, replace(Query.from_options(opts, client.config), subpath=subpath), opts)

    def rows(self, spark: SparkSession, predicate: str | None = None) -> DataFrame:
        """Return the rows. Arguments and errors as of `load_table`."""
        if predicate is not None:
            return read_pruned(spark, self.client, self.query, predicate, self.opts)
        return read(spark, self.client, self.query, opts=self.opts)


def load_table(
    spark: SparkSession,
    path: str,
    options: Mapping[str, object] | None = None,
    *,
    predicate: str | None = None,
) -> DataFrame:
    """Return the DataFrame of a query given by Apache Hudi's options.

    Args:
        spark: Session to read with.
        path: Path or URI of the table, or of a folder in it.
        options: Apache Hudi's read options.
        predicate: SQL condition on the columns, used to prune files; rows that do not match it may be returned.

    Returns:
        The rows of the query, read lazily.

    Raises:
        NotAHudiTableError: There is no table at the path.
        QueryError: The query is not supported.
        ConfigError: An option of another table format chooses the rows.
        InvalidOptionError: An option is invalid.
    """
    return TableQuery.open(spark, path, options).rows(spark, predicate)


def session_settings(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the session's settings for the object store of a path."""
    if not path.startswith(("s3://", "s3a://", "s3n://")):
        return {}
    settings = {key: spark.conf.get(f"spark.hadoop.{key}", None) for key in HADOOP_S3_KEYS}
    return {key: value for key, value in settings.items() if value is not None}
