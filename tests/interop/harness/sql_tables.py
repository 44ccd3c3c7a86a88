"""Tables that both engines create and change by SQL."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.interop.harness.oracle import Oracle


def create_by_both(
    oracle: Oracle, spark: SparkSession, name: str, path: str, columns: str, *, kind: str, blocks: str
) -> None:
    """Create a table by Apache Hudi and register it, with a format of log blocks, in Spark; its schema is the one with
    which pyhudi creates a table of these columns."""
    oracle.sql(
        f"CREATE TABLE {name} ({columns}) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'n', type = '{kind}') LOCATION '{path}'"
    )
    create_schema = HudiTable.for_path(path).config.create_schema
    properties = f"'hoodie.logfile.data.block.format' = '{blocks}'"
    spark.sql(f"CREATE TABLE {name} USING hudi TBLPROPERTIES ({properties}) LOCATION '{path}'")
    spark.sql(f"CREATE TABLE {name}_new ({columns}) USING hudi LOCATION '{path}_new'")
    made = HudiTable.for_path(f"{path}_new").config.create_schema
    assert made is not None
    assert create_schema is not None
    assert made.replace(f"{name}_new", name) == create_schema
    spark.sql(f"DROP TABLE {name}_new")
