"""Execution of change data queries on Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.arrow.ipc import table_to_bytes
from pyhudi.config.enums import CdcMode
from pyhudi.read.cdc.cdc_inference import CdcInferenceCase
from pyhudi.read.cdc.cdc_plan import CdcPlan
from pyhudi.read.cdc.cdc_reader import CdcReader
from pyhudi.spark.execution.local_relations import empty_frame, small_frame
from pyhudi.spark.execution.slice_tasks import parallelism, run_on_rows
from pyhudi.spark.merger_pickling import check_picklable
from pyhudi.spark.spark_types import spark_schema

_SMALL = 4 * 1024 * 1024
"""Bytes of CDC logs up to which the driver reads them, and the result is a local relation."""
_TASKS_PER_CORE = 4
"""Pieces per core, so that faster cores process more."""


def cdc_frame(spark: SparkSession, plan: CdcPlan) -> DataFrame:
    """Return the changes of a plan, with the columns op, ts_ms, before and after. Lazy.

    Raises:
        ConfigError: The merger of the table cannot be pickled, and tasks have to read the changes.
    """
    if _is_small(plan):
        batches = (batch for task in plan.tasks.to_pylist() for batch in CdcReader(plan.context).read(task))
        return small_frame(spark, pa.Table.from_batches(list(batches), plan.output_schema))
    if not plan.tasks.num_rows:
        return empty_frame(spark, spark_schema(plan.output_schema))
    check_picklable(plan.context.read_context.rules)
    count = min(plan.tasks.num_rows, parallelism(spark) * _TASKS_PER_CORE)
    # Neighbouring files belong to the same commit. Round-robin assignment balances the pieces.
    numbers = (pa.array(range(first, plan.tasks.num_rows, count)) for first in range(count))
    pieces = tuple(table_to_bytes(plan.tasks.take(some)) for some in numbers)
    return run_on_rows(spark, pieces, CdcReader(plan.context).read, plan.output_schema)


def _is_small(plan: CdcPlan) -> bool:
    """Return True if CDC logs suffice and are so small that reading them takes less time than a Spark job."""
    logged = pc.equal(plan.tasks["case"], CdcInferenceCase.AS_IS)
    if plan.context.mode is not CdcMode.DATA_BEFORE_AFTER or not pc.all(logged, min_count=1).as_py():
        return False
    size = pc.sum(plan.tasks["logged_bytes"], skip_nulls=False).as_py()
    return size is not None and size <= _SMALL
