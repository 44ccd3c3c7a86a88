"""Keys of new records with their planned files, so that the record index need not read them back from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.metadata.records.record_index_file_groups import NO_FILE_GROUP, RecordIndexFileGroups
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.helper_columns import INDEX_GROUP, INDEX_LOCATION, OLD_FILE_ID
from pyhudi.spark.lookup.record_index.record_index_lookup import BatchLocations
from pyhudi.spark.write.plans.file_groups.row_routing import new_key_locations
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.write.location_columns import IS_DELETE, PLACEMENT_KEY
from pyhudi.write.planning.workload_profile import WorkloadProfile


@dataclass(frozen=True, slots=True)
class PlannedKeys:
    """The new keys of a batch that was looked up in the record index, and the plan that sends them to files."""

    index_locations: BatchLocations
    workload: WorkloadProfile

    def new_keys(self, files: pa.Table, groups: RecordIndexFileGroups) -> DataFrame | None:
        """Return the new keys (`INDEX_LOCATION`, `INDEX_GROUP`, `PLACEMENT_KEY`), those of one file group of the
        index in one partition of the frame. Lazy.

        Args:
            files: Files that got new records: partition, file_id, number, and how many (``tail``).
            groups: The file groups of the index now.

        Returns:
            None if the write may have written records to other files than planned, so that the files must be read.
        """
        if groups.ids != self.index_locations.groups.ids or not matches_plan(files, self.workload):
            return None
        new = F.col(OLD_FILE_ID).isNull() & ~F.col(IS_DELETE) & (F.col(INDEX_GROUP) != F.lit(NO_FILE_GROUP))
        keys = self.index_locations.locations.where(new).select(RECORD_KEY, PARTITION_PATH, INDEX_GROUP, PLACEMENT_KEY)
        located = new_key_locations(keys, self.workload, files)
        return located.select(RECORD_KEY, INDEX_LOCATION, INDEX_GROUP, PLACEMENT_KEY)


def matches_plan(files: pa.Table, workload: WorkloadProfile) -> bool:
    """Return True if each partition got as many new records as planned, all of them in planned files.

    Args:
        files: Files that got new records: partition, file_id, and how many (``tail``; null: not known).
        workload: The plan.
    """
    if not pc.all(in_groups(files, workload.insert_targets), min_count=0).as_py() or files["tail"].null_count:
        return False
    planned = workload.inserts
    return _sums(planned["partition"], planned["rows"]) == _sums(files["partition"], files["tail"])


def _sums(partitions: pa.ChunkedArray, rows: pa.ChunkedArray) -> Mapping[str, int]:
    """Return the rows by partition."""
    table = pa.table([partitions, rows], names=["partition", "rows"])
    summed = table.group_by("partition").aggregate([("rows", "sum")])
    return dict(zip(summed["partition"].to_pylist(), summed["rows_sum"].to_pylist(), strict=True))
