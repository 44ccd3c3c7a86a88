"""Tagging: where in the table the key of every incoming row is.

The tagged rows have ``_pyhudi_file_id``, ``_pyhudi_base_path`` and ``_pyhudi_row``, null for new records. A base file
may hold a key more than once; every location makes a row. Deletes of keys that are nowhere are left out.

A look-up has two steps. First the incoming keys are found in the base files: narrow rows, with the incoming keys
broadcast when they are not too many, so that the table's keys are never shuffled. Then the rows get the locations
found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import IndexType, MergeMode
from pyhudi.errors import UnsupportedTableError
from pyhudi.keygen import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.execution.cached_frames import PersistFrame
from pyhudi.spark.keys.deduplication import dedupe
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.lookup.base_file_keys import FILE_NO, OLD_PARTITION, BaseFiles, KeyLookup
from pyhudi.spark.lookup.batch_summary import Batch, summarize
from pyhudi.spark.lookup.bloom_lookup import bloom_locations
from pyhudi.spark.lookup.current_locations import current_locations
from pyhudi.spark.lookup.global_tagging import apply_partition_changes, global_locations
from pyhudi.spark.lookup.key_columns import KeyColumns, native_candidates, scan_locations
from pyhudi.spark.lookup.record_index_lookup import BatchLocations, locate
from pyhudi.spark.lookup.record_index_tagging import counted, tag_located, unknown_groups
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.write.location_columns import BASE_PATH, DELETE, FILE_ID, ROW
from pyhudi.write.write_checks import KNOWN_INDEXES

__all__ = ["KeyLookup", "tag", "untagged"]

_MOVES = {
    IndexType.GLOBAL_SIMPLE: options.SIMPLE_UPDATE_PARTITION_PATH,
    IndexType.RECORD_INDEX: options.RECORD_INDEX_UPDATE_PARTITION_PATH,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: options.RECORD_INDEX_UPDATE_PARTITION_PATH,
}
"""Options that decide whether records move to other partitions; all other indexes use that of the bloom index."""
_FOUND_PATH, _FOUND_ID = "_pyhudi_file_path", "_pyhudi_old_file_id"


def _lazy(frame: DataFrame, rows: int | None = None) -> DataFrame:
    del rows
    return frame


def untagged(rows: DataFrame) -> DataFrame:
    """Rows of which none is in the table: no locations, and no deletes."""
    if DELETE in rows.columns:
        rows = rows.where(~F.coalesce(F.col(DELETE), F.lit(False)))
    nulls = {FILE_ID: "string", BASE_PATH: "string", ROW: "bigint"}
    rows = rows.withColumn(DELETE, F.lit(False))
    return rows.withColumns({name: F.lit(None).cast(kind) for name, kind in nulls.items()})


def untagged_batch(
    rows: DataFrame,
    spec: KeySpec,
    merging: MergeSettings,
    persist: PersistFrame,
    *,
    combine: bool,
    global_keys: bool,
    hard_deletes: bool = False,
) -> DataFrame:
    """`untagged` rows that are persisted already; those of one key are merged first if that is wanted (*combine*) and
    there are such. Runs a Spark job to see that."""
    if not combine:
        return untagged(rows)
    batch = summarize(rows, native_candidates(rows.schema, spec), global_keys=global_keys)
    if not batch.has_duplicates:
        return untagged(rows)
    merged = _one_for_each(rows, merging, global_keys=global_keys, hard_deletes=hard_deletes)
    return persist(untagged(merged), batch.rows)


def _one_for_each(rows: DataFrame, merging: MergeSettings, *, global_keys: bool, hard_deletes: bool) -> DataFrame:
    """One row for each key; of deletes by key one is as good as another."""
    if hard_deletes:
        return rows.dropDuplicates([PARTITION_PATH, RECORD_KEY])
    return dedupe(rows, merging, global_keys=global_keys)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Tagged rows; with their ``counts`` by file group (COUNTS_SCHEMA) and their keys' locations if these are known
    from the record index. ``inconsistencies``: what was found in the record index that cannot be."""

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
    batch: Batch | None = None,
    persist: PersistFrame = _lazy,
) -> Tagged:
    """Tag rows with the locations of their keys.

    *rows* have keys and ``_pyhudi_delete``; *slices* (SLICE_SCHEMA) are the file groups to search. *combine*: rows of
    one key are merged first (`dedupe`), which costs nothing when no key comes twice. *hard_deletes*: rows are deletes
    that win whatever their ordering values say. With a global index a row may come out as a delete at its old location
    and a new record at the new one, or with the partition path it had before.

    Runs a Spark job over *rows* (`locate` with a record index, else `summarize`, unless *batch* is given), for BLOOM
    another over the files' footers.
    Evaluating the result evaluates *rows* twice: persist them before if they are expensive. *persist* may persist what
    it is given, so that evaluating the result several times searches the files once: the locations that were found,
    which are narrow, or where that would not do, the result.

    Raises:
        UnsupportedTableError: the index is not supported.
    """
    if lookup.index not in KNOWN_INDEXES:
        known = ", ".join(sorted(KNOWN_INDEXES))
        raise UnsupportedTableError(f"{options.INDEX_TYPE.key}={lookup.index} is not supported yet; use one of {known}")
    if lookup.spec.auto_keys and not lookup.stored_keys:
        return Tagged(untagged(rows))
    everywhere = lookup.index.is_global
    if len(BaseFiles.of(slices, None, log_only=lookup.merge_logs)) == 0:
        return Tagged(
            untagged_batch(
                *(rows, lookup.spec, lookup.merging, persist),
                combine=combine,
                global_keys=everywhere,
                hard_deletes=hard_deletes,
            )
        )
    located = None
    inconsistencies: tuple[str, ...] = ()
    if lookup.records is not None:
        located = locate(rows, lookup.records, persist)
        batch = located.batch
        unknown = unknown_groups(located, slices, lookup.client)
        if unknown is not None:
            located, batch, inconsistencies = None, None, unknown
    batch = batch or summarize(rows, native_candidates(rows.schema, lookup.spec), global_keys=everywhere)
    merged = combine and batch.has_duplicates
    if merged:
        rows = _one_for_each(rows, lookup.merging, global_keys=everywhere, hard_deletes=hard_deletes)
    files = BaseFiles.of(slices, None if everywhere else batch.partitions, log_only=lookup.merge_logs)
    small = batch.rows <= lookup.opts.get_typed(options.INDEX_BROADCAST_ROWS)
    if small:
        persist = partial(persist, rows=batch.rows)
    if len(files) == 0 or batch.rows == 0:
        return Tagged(persist(untagged(rows)), inconsistencies=inconsistencies)
    if located is not None:
        return _tag_by_records(rows, located, slices, lookup, small=small, hard_deletes=hard_deletes)
    narrow = small and not merged
    search = BaseFileLookup(rows, lookup, files, batch, persist if narrow else _lazy)
    found = search.tag_everywhere(hard_deletes) if everywhere else search.tag_in_partition()
    return Tagged(found if narrow else persist(found), inconsistencies=inconsistencies)


def _tag_by_records(
    rows: DataFrame, located: BatchLocations, slices: pa.Table, lookup: KeyLookup, *, small: bool, hard_deletes: bool
) -> Tagged:
    """The tagged rows by the record index, without positions but for those whose record is in another partition."""

    def tag_moving(moving: DataFrame, old: pa.Table) -> DataFrame:
        lookup_by_scan = replace(lookup, merge_logs=True, records=None)
        return tag(moving, old, lookup_by_scan, hard_deletes=hard_deletes).rows

    found, moved = tag_located(rows, located, slices, broadcast=small, tag_moving=tag_moving)
    if moved or located.most > 1:
        return Tagged(found)
    return Tagged(found, counted(located, slices), located)


@dataclass(frozen=True, slots=True)
class BaseFileLookup:
    rows: DataFrame
    lookup: KeyLookup
    files: BaseFiles
    batch: Batch
    persist: PersistFrame = _lazy

    @property
    def small(self) -> bool:
        """True if the batch's keys may be broadcast."""
        return self.batch.rows <= self.lookup.opts.get_typed(options.INDEX_BROADCAST_ROWS)

    def _base_locations(self, extra: tuple[str, ...] = ()) -> tuple[DataFrame, KeyColumns]:
        """Locations of the keys of the batch: key columns, file number, old partition, row position, *extra* base
        columns."""
        small = self.small
        if self.lookup.merge_logs:
            return self._merged_locations(extra)
        if self.lookup.index.is_bloom and not self.lookup.virtual_keys:
            return bloom_locations(self.rows, self.lookup, self.files, extra)
        everywhere = self.lookup.index.is_global
        return scan_locations(
            self.rows, self.lookup, self.files, self.batch, extra, broadcast=small, everywhere=everywhere
        )

    def _merged_locations(self, extra: tuple[str, ...]) -> tuple[DataFrame, KeyColumns]:
        """The same, of slices with log files by what they hold now: those locations have no position."""
        everywhere = self.lookup.index.is_global
        parts = [
            scan_locations(
                *(self.rows, self.lookup, files, self.batch, extra),
                broadcast=self.small,
                everywhere=everywhere,
                merge_logs=merge_logs,
            )
            for files, merge_logs in zip(self.files.split(), (False, True), strict=True)
            if len(files)
        ]
        locations, keys = parts[0]
        return (locations if len(parts) == 1 else locations.unionByName(parts[1][0])), keys

    def tag_in_partition(self) -> DataFrame:
        locations, keys = self._base_locations()
        locations = self.persist(locations)
        if self.lookup.has_log_deletes:
            locations = current_locations(
                self.rows, locations, keys, self.lookup, self.files, self.batch, self.small, self.persist
            )
        small = self.small
        rows = self.rows
        condition = keys.matches(rows) & (F.col(PARTITION_PATH) == F.col(OLD_PARTITION))
        found = rows.join(F.broadcast(locations) if small else locations, condition, "left")
        kept = found.where(~F.coalesce(F.col(DELETE), F.lit(False)) | F.col(FILE_NO).isNotNull())
        own = [F.col(quoted([name])) for name in rows.columns]
        return self._named(kept.select(*own, FILE_NO, ROW))

    def tag_everywhere(self, hard_deletes: bool) -> DataFrame:
        option = _MOVES.get(self.lookup.index, options.BLOOM_UPDATE_PARTITION_PATH)
        moves = self.lookup.opts.get_typed(option)
        merging = self.lookup.merging
        refused = ""
        if moves and not hard_deletes and (merging.partial_update_mode or merging.mode is MergeMode.CUSTOM):
            kind = f"with {merging.partial_update_mode}" if merging.partial_update_mode else "by a merger"
            refused = (
                f"a record that moves cannot be merged {kind} yet; set {option.key}=false to update it "
                "where it is, or delete the records that move and insert them"
            )
        rows = self.rows
        ordering = () if hard_deletes or not moves else self.lookup.ordering_fields
        kept = () if hard_deletes or moves else self.lookup.stored_partition_fields
        # fields inside structs are read with the column that they are in
        extra = dict.fromkeys(top_column(name, rows.columns) for name in (*ordering, *kept))
        locations, keys = self._base_locations(tuple(extra))
        sequences = self.lookup.merging.sequences
        gathered = self.persist(global_locations(locations, keys, ordering, kept, sequences=sequences))
        chosen = F.broadcast(gathered) if self.small else gathered
        found = rows.join(chosen, keys.matches(rows), "left")
        own = {name: F.col(quoted([name])) for name in rows.columns}
        return self._named(
            apply_partition_changes(
                found, own, rows.schema, ordering, kept, moves=moves, sequences=sequences, refused=refused
            )
        )

    def _named(self, rows: DataFrame) -> DataFrame:
        """Replace file numbers by file group and path."""
        known = self.files.frame(rows.sparkSession, "file_no", "file_id", "base_path")
        names = [name for name in rows.columns if name not in (FILE_NO, ROW)]
        named = rows.join(F.broadcast(known), FILE_NO, "left")
        columns: list[str | Column] = [quoted([name]) for name in names]
        columns += [F.col(_FOUND_ID).alias(FILE_ID), F.col(_FOUND_PATH).alias(BASE_PATH), F.col(ROW)]
        return named.select(*columns)
