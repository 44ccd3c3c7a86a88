"""Settings of a Spark session on which the meaning of a filter depends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.planning_context import FilterSession
from pyhudi.spark.read.pruning.overridden_functions import overridden_in_filter
from pyhudi.spark.session_settings import session_zone
from pyhudi.table.config.table_config import TableConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def filter_session(spark: SparkSession, config: TableConfig, row_filter: RowFilter | None) -> FilterSession:
    """Return the time zone of the session, and the functions in a filter that it overrides."""
    return FilterSession(session_zone(spark), overridden_in_filter(spark, config, row_filter))
