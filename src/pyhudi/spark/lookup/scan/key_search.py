"""Search for the keys of a batch in base files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.config import options
from pyhudi.spark.lookup.batch_summary import BatchSummary
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class KeySearch:
    """Search for the keys of a batch in base files.

    Attributes:
        rows: Rows of the batch.
        lookup: The table and settings of the lookup.
        files: Base files to search.
        batch: Summary of the rows.
    """

    rows: DataFrame
    lookup: KeyLookup
    files: BaseFiles
    batch: BatchSummary

    @property
    def broadcast(self) -> bool:
        """True if the batch is small enough to broadcast its keys."""
        return self.batch.rows <= self.lookup.opts.get_typed(options.INDEX_BROADCAST_ROWS)

    @property
    def all_partitions(self) -> bool:
        """True if keys are searched in all partitions, with a global index, and not only in those of their rows."""
        return self.lookup.index.is_global
