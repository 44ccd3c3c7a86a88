"""Tagging of rows by the keys that files contain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.cached_frames import PersistFrame
from pyhudi.spark.helper_columns import OLD_BASE_PATH, OLD_FILE_ID, OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.keys.deduplication import is_marked_delete
from pyhudi.spark.lookup.bloom.bloom_lookup import bloom_locations
from pyhudi.spark.lookup.partition_updates.global_tagging import (
    PartitionUpdatePolicy,
    apply_partition_updates,
    file_numbers,
    global_locations,
    is_elsewhere,
    locations_column,
    merges_moved_records,
    moves_records,
)
from pyhudi.spark.lookup.partition_updates.partition_update_checks import check_merge_of_moved_records
from pyhudi.spark.lookup.partition_updates.partition_update_merge import PartitionUpdateMerge
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles
from pyhudi.spark.lookup.scan.current_locations import current_locations
from pyhudi.spark.lookup.scan.key_columns import KeyColumns, extra_name
from pyhudi.spark.lookup.scan.key_scan import scan_locations
from pyhudi.spark.lookup.scan.key_search import KeySearch
from pyhudi.spark.spark_errors import task_errors
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION


@dataclass(frozen=True, slots=True)
class FileTagger:
    """Tagging of the rows of a search by the keys in its files.

    Attributes:
        search: The search.
        persist: Persists the locations of keys, or returns them as they are.
    """

    search: KeySearch
    persist: PersistFrame

    def tag(self) -> DataFrame:
        """Return the tagged rows. Runs Spark jobs with some indexes (`pyhudi.spark.lookup.tagging.tag`)."""
        return self._tag_in_all_partitions() if self.search.all_partitions else self._tag_in_partition()

    def _locations(self, extra: tuple[str, ...] = ()) -> tuple[DataFrame, KeyColumns]:
        """Return the locations of the keys of the batch (`scan_locations`), with ``extra`` columns of base rows."""
        lookup = self.search.lookup
        if lookup.merge_logs:
            return self._merged_locations(extra)
        if lookup.index.is_bloom and not lookup.virtual_keys:
            return bloom_locations(self.search, extra)
        return scan_locations(self.search, extra)

    def _merged_locations(self, extra: tuple[str, ...]) -> tuple[DataFrame, KeyColumns]:
        """Return the same, with the merged rows of slices with log files; their locations have no position."""
        parts = [
            scan_locations(replace(self.search, files=files), extra, merge_logs=merge_logs)
            for files, merge_logs in zip(self.search.files.split(), (False, True), strict=True)
            if len(files)
        ]
        locations, keys = parts[0]
        return (locations if len(parts) == 1 else locations.unionByName(parts[1][0])), keys

    def _tag_in_partition(self) -> DataFrame:
        """Tag rows with the locations of their keys in their partitions."""
        locations, keys = self._locations()
        locations = self.persist(locations)
        if self.search.lookup.has_log_deletes:
            locations = current_locations(self.search, locations, keys, self.persist)
        rows = self.search.rows
        condition = keys.matches(rows) & (F.col(PARTITION_PATH) == F.col(OLD_PARTITION))
        joined = rows.join(F.broadcast(locations) if self.search.broadcast else locations, condition, "left")
        to_write = joined.where(~is_marked_delete() | F.col(SEARCHED_FILE).isNotNull())
        table_columns = [F.col(quoted([name])) for name in rows.columns]
        return self._with_file_groups(to_write.select(*table_columns, SEARCHED_FILE, ROW_POSITION))

    def _tag_in_all_partitions(self) -> DataFrame:
        """Tag rows with the locations of their keys in any partition. Runs a Spark job if versions are merged where
        records move (`merges_moved_records`)."""
        rows, lookup = self.search.rows, self.search.lookup
        moves = moves_records(lookup)
        merges = not lookup.hard_deletes and merges_moved_records(lookup)
        changes = PartitionUpdatePolicy(
            moves,
            ordering=() if lookup.hard_deletes or not moves else lookup.ordering_fields,
            stored_columns=() if lookup.hard_deletes or moves else lookup.stored_partition_fields,
            compares_sequences=lookup.merging.compares_sequences,
        )
        # Fields inside structs are read with their top-level column.
        extra = dict.fromkeys(top_column(name, rows.columns) for name in (*changes.ordering, *changes.stored_columns))
        locations, keys = self._locations(tuple(extra))
        gathered = self.persist(global_locations(locations, keys, changes))
        joined = rows.join(F.broadcast(gathered) if self.search.broadcast else gathered, keys.matches(rows), "left")
        files = self._files_of_moving(joined) if merges else None
        if files is None:
            return self._with_file_groups(apply_partition_updates(joined, rows.schema, changes))
        staying = joined.where(~F.coalesce(is_elsewhere(), F.lit(False)))
        moved = self._merge_moving(joined.where(is_elsewhere()), files)
        return self._with_file_groups(apply_partition_updates(staying, rows.schema, changes).unionByName(moved))

    def _files_of_moving(self, joined: DataFrame) -> BaseFiles | None:
        """Return the files of stored records that incoming rows may move; None: there are none. Runs a Spark job."""
        numbers = joined.where(is_elsewhere()).select(F.explode(file_numbers()).alias(SEARCHED_FILE)).distinct()
        with task_errors():
            moving_files = pa.array([row[0] for row in numbers.collect()], pa.int32())
        if not len(moving_files):
            return None
        lookup = self.search.lookup
        check_merge_of_moved_records(lookup, self.search.rows)
        table = self.search.files.table
        return BaseFiles(table.filter(pc.is_in(table["file_no"], value_set=moving_files)))

    def _merge_moving(self, moving: DataFrame, files: BaseFiles) -> DataFrame:
        """Merge rows with the stored records that they may move, which are in these files. Lazy."""
        rows, lookup = self.search.rows, self.search.lookup
        table_columns = [name for name in rows.columns if name not in (RECORD_KEY, PARTITION_PATH, IS_DELETE)]
        locations, keys = scan_locations(replace(self.search, files=files), tuple(table_columns), merge_logs=True)
        key = keys.in_locations[0]
        # Of several records of a key one is merged; all of them are deleted.
        stored = locations.dropDuplicates([key]).select(
            *(F.col(quoted([extra_name(name)])).alias(name) for name in table_columns),
            F.col(key).alias(RECORD_KEY),
            F.col(OLD_PARTITION).alias(PARTITION_PATH),
            F.lit(False).alias(IS_DELETE),
        )
        merge = PartitionUpdateMerge(MergeRules.for_table(lookup.merging), lookup.spec)
        return merge.apply(moving, rows.columns, locations_column(), stored)

    def _with_file_groups(self, rows: DataFrame) -> DataFrame:
        """Replace file numbers by file group and path."""
        files = self.search.files.frame(rows.sparkSession, "file_no", "file_id", "base_path")
        names = [name for name in rows.columns if name not in (SEARCHED_FILE, ROW_POSITION)]
        named = rows.join(F.broadcast(files), SEARCHED_FILE, "left")
        columns: list[str | Column] = [quoted([name]) for name in names]
        columns += [F.col(OLD_FILE_ID).alias(FILE_ID), F.col(OLD_BASE_PATH).alias(BASE_PATH), F.col(ROW_POSITION)]
        return named.select(*columns)
