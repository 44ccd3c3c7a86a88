"""Tagging: location of the key of each incoming row in the table.

Tagged rows have `FILE_ID`, `BASE_PATH` and `ROW_POSITION`, null for new records. If base files contain a key more than
once, there is a row for each location. Deletes of keys that do not exist are skipped.

A lookup has two steps. First, the incoming keys are searched in a record index or in files. These rows are narrow, and
the incoming keys are broadcast if there are not too many, so that the keys of the table are never shuffled. Then the
locations are joined with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.errors import UnsupportedTableError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.cached_frames import PersistFrame
from pyhudi.spark.helper_columns import OLD_FILE_ID, OLD_PARTITION
from pyhudi.spark.keys.deduplication import dedupe, is_marked_delete
from pyhudi.spark.lookup.batch_summary import BatchSummary, summarize
from pyhudi.spark.lookup.file_tagging import FileTagger
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.record_index.record_index_lookup import BatchLocations, look_up_locations
from pyhudi.spark.lookup.record_index.record_index_tagging import (
    counts_by_file_group,
    is_in_other_partition,
    moved_file_groups,
    unknown_groups,
    with_file_groups,
)
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles
from pyhudi.spark.lookup.scan.key_columns import native_candidates
from pyhudi.spark.lookup.scan.key_search import KeySearch
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.write_checks import KNOWN_INDEXES


def _lazy(frame: DataFrame, rows: int | None = None) -> DataFrame:
    del rows
    return frame


def untagged(rows: DataFrame) -> DataFrame:
    """Return rows of which none is in the table: without locations and without deletes."""
    if IS_DELETE in rows.columns:
        rows = rows.where(~is_marked_delete())
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

    def summarize(self, rows: DataFrame) -> BatchSummary:
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
class TaggedRows:
    """Tagged rows.

    Attributes:
        rows: The rows.
        counts: Number of rows by file group (COUNTS_SCHEMA), if known from the record index.
        index_locations: Locations of their keys, if known from the record index.
        inconsistencies: Errors found in the record index.
        adaptive: The plan of the rows may improve while it is executed.
    """

    rows: DataFrame
    counts: pa.Table | None = None
    index_locations: BatchLocations | None = None
    inconsistencies: tuple[str, ...] = ()
    adaptive: bool = True


def tag(
    rows: DataFrame,
    slices: pa.Table,
    lookup: KeyLookup,
    *,
    combine: bool = False,
    persist: PersistFrame = _lazy,
) -> TaggedRows:
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
        return TaggedRows(untagged(rows))
    deduplication = BatchDeduplication(lookup.spec, lookup.merging, lookup.index.is_global, lookup.hard_deletes)
    if len(BaseFiles.from_slices(slices, None, log_only=lookup.merge_logs)) == 0:
        return TaggedRows(deduplication.untagged(rows, persist) if combine else untagged(rows))
    indexed, inconsistencies = _indexed_locations(rows, slices, lookup, persist)
    batch = deduplication.summarize(rows) if indexed is None else indexed.batch
    merged = combine and batch.has_duplicates
    if merged:
        rows = deduplication.merge(rows)
    partitions = None if lookup.index.is_global else batch.partitions
    files = BaseFiles.from_slices(slices, partitions, log_only=lookup.merge_logs)
    search = KeySearch(rows, lookup, files, batch)
    persist = partial(persist, rows=batch.rows if search.broadcast else None)
    if len(files) == 0 or batch.rows == 0:
        return TaggedRows(persist(untagged(rows)), inconsistencies=inconsistencies)
    if indexed is not None:
        return _tag_by_record_index(search, indexed, slices)
    tagged = _tag_by_files(search, persist, merged=merged)
    return TaggedRows(tagged, inconsistencies=inconsistencies)


def _indexed_locations(
    rows: DataFrame, slices: pa.Table, lookup: KeyLookup, persist: PersistFrame
) -> tuple[BatchLocations | None, tuple[str, ...]]:
    """Return the locations of the keys of rows, if a record index is looked up; and the errors found in it, with which
    there are no locations."""
    if lookup.records is None:
        return None, ()
    locations = look_up_locations(rows, lookup.records, persist)
    unknown = unknown_groups(locations, slices, lookup.client)
    return (locations, ()) if unknown is None else (None, unknown)


def _tag_by_record_index(search: KeySearch, locations: BatchLocations, slices: pa.Table) -> TaggedRows:
    """Tag rows by the record index, without positions except for those whose record is in another partition. The
    locations are persisted; joining them with the rows again is cheap."""
    matched = locations.match(search.rows, broadcast=search.broadcast)
    moved = moved_file_groups(locations, matched)
    if moved.num_rows:
        # The stored records decide whether these rows move.
        moving = matched.where(is_in_other_partition()).drop(OLD_PARTITION, OLD_FILE_ID)
        scan = replace(search.lookup, merge_logs=True, records=None)
        scanned = tag(moving, slices.filter(in_groups(slices, moved)), scan).rows
        staying = matched.where(~F.coalesce(is_in_other_partition(), F.lit(False)))
        return TaggedRows(with_file_groups(staying, slices).unionByName(scanned))
    tagged = with_file_groups(matched, slices)
    # The counts of the index are those of the batch before rows of one key were merged.
    if locations.max_rows_of_key > 1:
        return TaggedRows(tagged)
    counts = counts_by_file_group(locations, slices)
    return TaggedRows(tagged, counts, locations, adaptive=not search.broadcast)  # rows and locations are persisted


def _tag_by_files(search: KeySearch, persist: PersistFrame, *, merged: bool) -> DataFrame:
    """Tag rows by the keys in files. The result is evaluated several times, so the locations or the result are
    persisted.

    Args:
        search: The search.
        persist: Persists a frame.
        merged: The rows of the search are merged rows of the batch.
    """
    if search.broadcast and not merged:
        # The locations are only those of the batch, and the rows are persisted already: joining them again is cheap.
        return FileTagger(search, persist).tag()
    # There are locations of all keys in the files, which are shuffled to be joined, or rows would be merged again.
    return persist(FileTagger(search, _lazy).tag())
