"""The operation ``bootstrap`` of a DataFrame writer, which writes no rows: the options name the source files."""

from __future__ import annotations

from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.spark.write.operations.bootstrap_tasks import bootstrap
from pyhudi.spark.write.write_input import own_columns
from pyhudi.storage import Storage
from pyhudi.write.write_result import WriteResult


def write_bootstrap(df: DataFrame, storage: Storage, opts: Options) -> WriteResult:
    """Bootstrap the files that options name. The columns of ``df``, if it has any, become those of the table.

    Raises:
        ConfigError: ``df`` has rows, or the options are inconsistent.
        TableExistsError: The table has commits already.
    """
    columns = from_spark_json(own_columns(df).schema.json()) if df.columns else None
    if df.columns and not df.isEmpty():
        raise ConfigError(
            f"the operation bootstrap creates a table over the files in {options.BOOTSTRAP_BASE_PATH.key} and "
            "does not write the rows of a DataFrame; pass an empty DataFrame, and upsert the rows afterwards"
        )
    return bootstrap(df.sparkSession, BootstrapPlan.from_options(storage, opts, columns))
