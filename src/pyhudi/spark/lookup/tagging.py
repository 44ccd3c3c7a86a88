"""Tagging: location of the key of each incoming row in the table.

Tagged rows have `FILE_ID`, `BASE_PATH` and `ROW_POSITION`, null for new records. If base files
contain a key more than once, there is a row for each location. Deletes of keys that do not exist are skipped.

A lookup has two steps. First, the incoming keys are searched in the base files. These rows are narrow, and the incoming
keys are broadcast if there are not too many, so that the keys of the table are never shuffled. Then the locations are
joined with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import Option, options
from pyhudi.config.enums import IndexType
from pyhudi.errors import UnsupportedTableError
from pyhudi.keygen import KeySpec
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.cached_frames import PersistFrame
from pyhudi.spark.keys.deduplication import dedupe
from pyhudi.spark.helper_columns import OLD_BASE_PATH, OLD_FILE_ID, OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.lookup.base_file_keys import BaseFiles, KeyLookup
from pyhudi.spark.lookup.batch_summary import Batch, summarize
from pyhudi.spark.lookup.bloom_lookup import bloom_locations
from pyhudi.spark.lookup.current_locations import current_locations
from pyhudi.spark.lookup.global_tagging import (
    PartitionUpdatePolicy,
    apply_partition_updates,
    file_numbers,
    global_locations,
    is_elsewhere,
    locations_column,
)
from pyhudi.spark.lookup.key_columns import KeyColumns, KeySearch, extra_name, native_candidates, scan_locations
from pyhudi.spark.lookup.partition_update_checks import check_merge_of_moved_records
from pyhudi.spark.lookup.partition_update_merge import PartitionUpdateMerge
from pyhudi.spark.lookup.record_index_lookup import BatchLocations, look_up_locations
from pyhudi.spark.lookup.record_index_tagging import counted, tag_located, unknown_groups
from pyhudi.spark.spark_errors import task_errors
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.write_checks import KNOWN_INDEXES

__all__ = ["KeyLookup", "tag", "untagged"]

_MOVES = {
    IndexType.GLOBAL_SIMPLE: options.SIMPLE_UPDATE_PARTITION_PATH,
    IndexType.RECORD_INDEX: options.RECORD_INDEX_UPDATE_PARTITION_PATH,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: options.RECORD_INDEX_UPDATE_PARTITION_PATH,
}
"""Options that decide whether records move to other partitions; all other indexes use that of the bloom index."""


def _moving_option(lookup: KeyLookup) -> Option[bool]:
    return _MOVES.get(lookup.index, options.BLOOM_UPDATE_PARTITION_PATH)


def moves_records(lookup: KeyLookup) -> bool:
    """Return True if records move to the partitions of their incoming versions, with a global index."""
    return lookup.opts.get_typed(_moving_option(lookup))


def merges_moved_records(lookup: KeyLookup) -> bool:
    """Return True if records that move are merged with the stored versions: by partial updates or a custom merger."""
    return lookup.index.is_global and lookup.merging.combines_versions and moves_records(lookup)


def _lazy(frame: DataFrame, rows: int | None = None) -> DataFrame:
    del rows
    return frame


def untagged(rows: DataFrame) -> DataFrame:
    """Return rows of which none is in the table: without locations and without deletes."""
    if IS_DELETE in rows.columns:
        rows = rows.where(~F.coalesce(F.col(IS_DELETE), F.lit(False)))
    nulls = {FILE_ID: "string", BASE_PATH: "string", ROW_POSITION: "bigint"}
    rows = rows.withColumn(IS_DELETE, F.lit(False))
    return rows.withColumns({name: F.lit(None).cast(kind) for name, kind in nulls.items()})


@dataclass(frozen=True, slots=True)
class BatchDeduplication:
    """Merging of rows of a batch that have the same key.

    Attributes:
        spec: Specification of keys.
        merging: Merge settings.
        global_keys: Rows of different partitions with the same key are one record.
        hard_deletes: Rows are deletes by key, which are interchangeable.
    """

    spec: KeySpec
    merging: MergeSettings
    global_keys: bool
    hard_deletes: bool = False

    def summarize(self, rows: DataFrame) -> Batch:
        """Summarize a batch. Runs a Spark job."""
        return summarize(rows, native_candidates(rows.schema, self.spec), global_keys=self.global_keys)

    def merge(self, rows: DataFrame) -> DataFrame:
        """Return one row per key. Lazy."""
        if self.hard_deletes:
            return rows.dropDuplicates([PARTITION_PATH, RECORD_KEY])
        return dedupe(rows, self.merging, global_keys=self.global_keys)

    def untagged(self, rows: DataFrame, persist: PersistFrame) -> DataFrame:
        """Return `untagged` rows, merged by key if keys are repeated.

        Runs a Spark job.

        Args:
            rows: Keyed rows, already persisted.
            persist: Persists merged rows.
        """
        batch = self.summarize(rows)
        return persist(untagged(self.merge(rows)), batch.rows) if batch.has_duplicates else untagged(rows)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Tagged rows.

    Attributes:
        rows: The rows.
        counts: Number of rows by file group (COUNTS_SCHEMA), if known from the record index.
        located: Locations of their keys, if known from the record index.
        inconsistencies: Errors found in the record index.
    """

    rows: DataFrame
    counts: pa.Table | None = None
    located: BatchLocations | None = None
    inconsistencies: tuple[str, ...] = ()


def tag(
    rows: DataFrame,
    slices: pa.Table,
    lookup: KeyLookup,
    *,
    combine: bool = False,
    hard_deletes: bool = False,
    persist: PersistFrame = _lazy,
) -> Tagged:
    """Tag rows with the locations of their keys.

    With a global index, a row may become a delete at its old location and a new record at the new one, merged with the
    stored record if the table has partial updates or a custom merger, or may get the partition path of the stored
    record.

    Runs a Spark job over the rows (`look_up_locations` with a record index, otherwise `summarize`), and for BLOOM
    another one over the footers of files. Evaluating the result evaluates the rows twice; persist them first if they
    are expensive.

    Args:
        rows: Rows with keys and `IS_DELETE`.
        slices: File groups to search (SLICE_SCHEMA).
        lookup: The table and settings of the lookup.
        combine: Merge rows with the same key first, which costs nothing if no key is repeated.
        hard_deletes: Rows are deletes that win regardless of ordering values.
        persist: May persist the locations, which are narrow, or otherwise the result, so that evaluating the result
            several times searches the files once.

    Returns:
        The tagged rows.

    Raises:
        UnsupportedTableError: The index is not supported.
    """
    if lookup.index not in KNOWN_INDEXES:
        supported = ", ".join(sorted(KNOWN_INDEXES))
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}={lookup.index} is not supported yet; use one of {supported}"
        )
    if lookup.spec.auto_keys and not lookup.stored_keys:
        return Tagged(untagged(rows))
    is_global = lookup.index.is_global
    deduplication = BatchDeduplication(lookup.spec, lookup.merging, is_global, hard_deletes)
    if len(BaseFiles.from_slices(slices, None, log_only=lookup.merge_logs)) == 0:
        return Tagged(deduplication.untagged(rows, persist) if combine else untagged(rows))
    located, inconsistencies = _located(rows, slices, lookup, persist)
    batch = deduplication.summarize(rows) if located is None else located.batch
    merged = combine and batch.has_duplicates
    if merged:
        rows = deduplication.merge(rows)
    files = BaseFiles.from_slices(slices, None if is_global else batch.partitions, log_only=lookup.merge_logs)
    search = KeySearch(rows, lookup, files, batch)
    small = search.broadcast
    if small:
        persist = partial(persist, rows=batch.rows)
    if len(files) == 0 or batch.rows == 0:
        return Tagged(persist(untagged(rows)), inconsistencies=inconsistencies)
    if located is not None:
        return _tag_by_records(rows, located, slices, lookup, small=small, hard_deletes=hard_deletes)
    narrow = small and not merged
    tagging = _FileTagging(search, persist if narrow else _lazy)
    tagged = tagging.tag_in_all_partitions(hard_deletes) if is_global else tagging.tag_in_partition()
    return Tagged(tagged if narrow else persist(tagged), inconsistencies=inconsistencies)


def _located(
    rows: DataFrame, slices: pa.Table, lookup: KeyLookup, persist: PersistFrame
) -> tuple[BatchLocations | None, tuple[str, ...]]:
    """Return the locations of the keys of rows, if a record index is looked up; and the errors found in it, with which
    there are no locations."""
    if lookup.records is None:
        return None, ()
    located = look_up_locations(rows, lookup.records, persist)
    unknown = unknown_groups(located, slices, lookup.client)
    return (located, ()) if unknown is None else (None, unknown)


def _tag_by_records(
    rows: DataFrame, located: BatchLocations, slices: pa.Table, lookup: KeyLookup, *, small: bool, hard_deletes: bool
) -> Tagged:
    """Tag rows by the record index, without positions except for those whose record is in another partition."""

    def tag_moving(moving: DataFrame, old: pa.Table) -> DataFrame:
        lookup_by_scan = replace(lookup, merge_logs=True, records=None)
        return tag(moving, old, lookup_by_scan, hard_deletes=hard_deletes).rows

    tagged, moved = tag_located(rows, located, slices, broadcast=small, tag_moving=tag_moving)
    if moved or located.most > 1:
        return Tagged(tagged)
    return Tagged(tagged, counted(located, slices), located)


@dataclass(frozen=True, slots=True)
class _FileTagging:
    """Tagging of rows by the keys in files."""

    search: KeySearch
    persist: PersistFrame = _lazy

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

    def tag_in_partition(self) -> DataFrame:
        """Tag rows with the locations of their keys in their partitions."""
        locations, keys = self._locations()
        locations = self.persist(locations)
        if self.search.lookup.has_log_deletes:
            locations = current_locations(self.search, locations, keys, self.persist)
        rows = self.search.rows
        condition = keys.matches(rows) & (F.col(PARTITION_PATH) == F.col(OLD_PARTITION))
        joined = rows.join(F.broadcast(locations) if self.search.broadcast else locations, condition, "left")
        to_write = joined.where(~F.coalesce(F.col(IS_DELETE), F.lit(False)) | F.col(SEARCHED_FILE).isNotNull())
        table_columns = [F.col(quoted([name])) for name in rows.columns]
        return self._with_file_groups(to_write.select(*table_columns, SEARCHED_FILE, ROW_POSITION))

    def tag_in_all_partitions(self, hard_deletes: bool) -> DataFrame:
        """Tag rows with the locations of their keys in any partition. Runs a Spark job if versions are merged where
        records move (`merges_moved_records`)."""
        rows, lookup = self.search.rows, self.search.lookup
        moves = moves_records(lookup)
        merges = not hard_deletes and merges_moved_records(lookup)
        changes = PartitionUpdatePolicy(
            moves,
            ordering=() if hard_deletes or not moves else lookup.ordering_fields,
            stored_columns=() if hard_deletes or moves else lookup.stored_partition_fields,
            sequences=lookup.merging.sequences,
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
        check_merge_of_moved_records(lookup, self.search.rows, _moving_option(lookup))
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
