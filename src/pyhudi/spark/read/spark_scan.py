"""A scan on Spark: a plan, with what its execution requires."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import InvalidText, ReadEngine
from pyhudi.errors import ConfigError
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True, slots=True)
class SparkScan:
    """A planned query that Spark executes.

    Attributes:
        spark: The session.
        table: The table.
        plan: The plan.
        opts: Read options.
    """

    spark: SparkSession
    table: TableSnapshot
    plan: ScanPlan
    opts: Options

    def with_plan(self, plan: ScanPlan) -> Self:
        """Return the scan of another plan."""
        return replace(self, plan=plan)

    @property
    def engine(self) -> ReadEngine:
        """Reader of base files: the Arrow reader if text that is not UTF-8 is to be replaced, because Spark does not
        check text.

        Raises:
            ConfigError: The options require Spark's reader and the replacement of such text.
        """
        engine: ReadEngine = self.opts.get_typed(options.READ_ENGINE)
        if self.opts.get_typed(options.READ_INVALID_TEXT) is InvalidText.FAIL:
            return engine
        if engine is ReadEngine.SPARK:
            raise ConfigError(
                f"{options.READ_INVALID_TEXT.key}={InvalidText.REPLACE} requires pyhudi's Arrow reader, but "
                f"{options.READ_ENGINE.key}={engine} selects Spark's, which does not check text; leave one of them out"
            )
        return ReadEngine.ARROW
