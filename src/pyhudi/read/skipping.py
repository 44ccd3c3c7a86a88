"""What a query need not read, by the indexes of the metadata table; each step says what it did, and why not more.

Partitions go first (their paths, then statistics of partitions), then file slices: by the record index or bloom filters
where the filter names keys, then by statistics of files. A slice is left out if none of its files can have a value that
meets the filter, term by term: merging takes every value of a row from one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.values import MergeMode, TableType
from pyhudi.errors import HudiError, QueryError
from pyhudi.metadata.freshness import statistics_are_current
from pyhudi.read.bounds import Bounds, Mask, excluded
from pyhudi.read.filters import RowFilter, Term, resolve_column
from pyhudi.read.keyfiles import BLOOM_FILTERS, RECORD_INDEX, keys_of, locate, not_in_filters
from pyhudi.read.secondary import keys_by_secondary
from pyhudi.read.slicefiles import files_of, groups_of
from pyhudi.read.statistics import COLUMN_STATS, PARTITION_STATS, file_bounds, has_order, partition_bounds
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.schema.meta import is_meta_column
from pyhudi.table.bucketed import looks_bucketed

if TYPE_CHECKING:
    from pyhudi.metadata.table import MetadataTable
    from pyhudi.read.listing import TableFiles
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.query import Query


@dataclass
class Skipping:
    """Leaves out partitions and slices for one query; ``report`` has a line for each index."""

    table: PinnedTable
    files: TableFiles
    query: Query
    schema: pa.Schema
    rows: RowFilter | None
    opts: Options
    path_columns: tuple[str, ...] = ()
    unchanged: frozenset[str] | None = None
    """Columns of which statistics by name are right; None: all."""
    report: list[str] = field(default_factory=list)
    known_partitions: int = 0
    found: pa.Table | None = None
    without_record_index: bool = False

    # --- partitions --------------------------------------------------------------------------------------------------

    def partitions(self, paths: list[str], by_path: Callable[[list[str]], list[str]]) -> list[str]:
        """The partitions that can have rows of the query; ``by_path`` leaves out what paths alone tell."""
        self.known_partitions = len(paths)
        kept = by_path(paths)
        metadata = self._usable()
        if metadata is None or not kept or not self.table.config.is_partitioned:
            return kept
        places = self._places(metadata, kept)
        if places is not None:
            mine = set(pc.unique(places["partition"]).to_pylist())
            self.report.append(f"{RECORD_INDEX}: {len(kept) - len(mine & set(kept))} of {len(kept)} partitions out")
            return [path for path in kept if path in mine]
        why = self._why_no_partition_stats(metadata)
        if why is not None:
            self.report.append(f"{PARTITION_STATS}: not used: {why}")
            return kept
        terms = {term: name for term, name in self._terms().items() if self._has_sound_partition_stats(term)}
        if not terms:
            self.report.append(f"{PARTITION_STATS}: not used: no condition on a column whose statistics are sure")
            return kept
        paths_kept = pa.array(kept, pa.string())
        try:
            out = self._out(terms, lambda name, kind: partition_bounds(metadata, name, kind, paths_kept), sure=True)
        except HudiError as e:
            self.files.distrust_indexes(e)
            self.report.append(f"{PARTITION_STATS}: not used: {e}")
            return kept
        self._say(PARTITION_STATS, "partitions", out, terms)
        return paths_kept.filter(pa.array(~out)).to_pylist()  # type: ignore[no-any-return]

    # --- slices ------------------------------------------------------------------------------------------------------

    def slices(self, slices: pa.Table) -> pa.Table:
        """The slices (`SLICE_SCHEMA`) that can have rows of the query."""
        metadata = self._usable()
        if metadata is None or not slices.num_rows:
            return slices
        try:
            left = self._by_keys(metadata, slices)
            # where the records are is known already
            return left if self.found is not None else self._by_statistics(metadata, left)
        except HudiError as e:
            self.files.distrust_indexes(e)
            self.report.append(f"indexes: not used: {e}")
            return slices

    def _by_keys(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        places = self._places(metadata)
        if places is not None:
            kept = slices.filter(pc.is_in(groups_of(slices), value_set=groups_of(places)))
            self.report.append(f"{RECORD_INDEX}: {slices.num_rows - kept.num_rows} of {slices.num_rows} slices out")
            return kept
        keys = self._keys()
        if keys is None:
            return slices
        if BLOOM_FILTERS in metadata.partitions:
            out, asked = not_in_filters(metadata, keys, slices)
            self.report.append(f"{BLOOM_FILTERS}: {int(out.sum())} of {slices.num_rows} slices out, {asked} asked")
            return slices.filter(pa.array(~out))
        return slices

    def _by_statistics(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        if not slices.num_rows:
            return slices
        if COLUMN_STATS not in metadata.partitions:
            self.report.append(f"{COLUMN_STATS}: not used: the metadata table has none")
            return slices
        terms = self._terms()
        if not terms:
            self.report.append(f"{COLUMN_STATS}: not used: no condition on a column that can have statistics")
            return slices
        files, owner = files_of(slices)
        partitions: list[str] = sorted(pc.unique(slices["partition"]).to_pylist())
        without = np.zeros(files.num_rows, np.bool_)
        has_logs = pc.greater(pc.list_value_length(slices["log_paths"]), 0).to_numpy(zero_copy_only=False)

        def bounds_of(name: str, kind: pa.DataType) -> Bounds:
            bounds, found = file_bounds(metadata, name, kind, files, partitions, self.known_partitions)
            without[:] |= ~found
            return bounds

        def by_slice(term: Term, mask: Mask) -> Mask:
            kept = np.bincount(owner[~mask], minlength=slices.num_rows) > 0
            out: Mask = ~kept
            return out if self._is_kept_by_merging(term) else out & ~has_logs

        out = self._out(terms, bounds_of, by_slice, count=slices.num_rows)
        self._say(COLUMN_STATS, "slices", out, terms)
        if without.any():
            self.report.append(f"{COLUMN_STATS}: {int(without.sum())} of {files.num_rows} files have no statistics")
        return slices.filter(pa.array(~out))

    def _keys(self) -> pa.StringArray | None:
        """The record keys that the filter names."""
        assert self.rows is not None
        if any(self._changed(name) for name in self.table.config.record_keys):
            return None
        return keys_of(self.rows, self.schema, self.table.config, self.opts)

    def _places(self, metadata: MetadataTable, partitions: list[str] | None = None) -> pa.Table | None:
        """Where the records are that the filter names, in these partitions; None if it names none, or nothing tells."""
        if RECORD_INDEX not in metadata.partitions or self.query.as_of is not None or self.without_record_index:
            return None
        if self.found is None:
            try:
                keys = self._keys()
                if keys is None:
                    keys = self._keys_by_secondary(metadata)
                if keys is not None and self._knows_all_keys():
                    self.found = locate(metadata, keys, partitions)
            except HudiError as e:
                self.files.distrust_indexes(e)
                self.report.append(f"{RECORD_INDEX}: not used: {e}")
            self.without_record_index = self.found is None
        return self.found

    def _knows_all_keys(self) -> bool:
        """Whether the record index has every key. Of a bucket index, which adds keys by log files, too, Apache Hudi
        does not index those; afterwards nothing tells which they are."""
        if self.table.config.table_type is not TableType.MERGE_ON_READ:
            return True
        bucketed = looks_bucketed(self.table)
        if bucketed is not None:
            self.report.append(f"{RECORD_INDEX}: not used: it may lack keys of log files, as {bucketed}")
        return bucketed is None

    def _keys_by_secondary(self, metadata: MetadataTable) -> pa.StringArray | None:
        """The record keys of the rows that the filter asks for by the values of indexed columns."""
        assert self.rows is not None
        found = keys_by_secondary(metadata, self.query, self.rows, self.schema, self.path_columns)
        if found is not None:
            self.report.append(found[1])
        return None if found is None else found[0]

    # --- conditions --------------------------------------------------------------------------------------------------

    def _usable(self) -> MetadataTable | None:
        """The metadata table, if its indexes may be used."""
        if self.rows is None or self.query.is_incremental:
            return None
        why = None
        if not self.opts.get_typed(options.DATA_SKIPPING_ENABLE):
            why = f"{options.DATA_SKIPPING_ENABLE.key} is false"
        elif self.files.metadata is None:
            why = self.files.why
        elif not self.rows.anyof:
            why = "nothing in the filter is a comparison in SQL, or written as [(column, op, value), …]"
        if why is None:
            return self.files.metadata
        line = f"indexes: not used: {why}"
        if line not in self.report:
            self.report.append(line)
        return None

    def _terms(self) -> dict[Term, str]:
        """Conditions on columns that can have statistics, with the names of the columns there."""
        assert self.rows is not None
        found: dict[Term, str] = {}
        for term in (t for group in self.rows.anyof for t in group):
            if not isinstance(term.value, Hashable):
                continue
            try:
                steps = resolve_column(term.column, self.schema)
            except QueryError:
                continue
            name = ".".join(steps)
            if (is_meta_column(name) and name != RECORD_KEY) or steps[0] in self.path_columns or self._changed(name):
                continue
            if not has_order(self._type(term)) or (term.value is None and len(steps) > 1):
                continue
            found[term] = name
        return found

    def _changed(self, name: str) -> bool:
        """Whether files may have another column under the name of a column."""
        return self.unchanged is not None and name not in self.unchanged and name != RECORD_KEY

    def _type(self, term: Term) -> pa.DataType:
        steps = resolve_column(term.column, self.schema)
        kind: Any = self.schema
        return reduce(lambda inside, step: inside.field(step).type, steps, kind)

    def _has_sound_partition_stats(self, term: Term) -> bool:
        """Whether every file with values surely has a part in them: files without statistics have none, and those are
        files with long texts, and with what is not a number."""
        kind = self._type(term)
        fixed = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
        return fixed and term.value is not None and "." not in term.column and self._is_kept_by_merging(term)

    def _is_kept_by_merging(self, term: Term) -> bool:
        """Whether the values of merged rows are those of their files."""
        config = self.table.config
        return config.merge_mode is not MergeMode.CUSTOM or term.column in (*config.record_keys, RECORD_KEY)

    def _why_no_partition_stats(self, metadata: MetadataTable) -> str | None:
        if PARTITION_STATS not in metadata.partitions:
            return "the metadata table has none"
        if self.query.as_of is not None:
            return "they are those of the latest state"
        return statistics_are_current(metadata, PARTITION_STATS)

    def _out(
        self,
        terms: dict[Term, str],
        bounds_of: Callable[[str, pa.DataType], Bounds],
        fold: Callable[[Term, Mask], Mask] | None = None,
        *,
        count: int | None = None,
        sure: bool = False,
    ) -> Mask:
        """What no group of conditions can be met in; ``sure`` asks that there be no nulls."""
        assert self.rows is not None
        bounds: dict[str, Bounds] = {}
        masks: dict[Term, Mask] = {}
        for term, name in terms.items():
            if name not in bounds:
                bounds[name] = bounds_of(name, self._type(term))
            mask = excluded(term, bounds[name])
            if sure:
                mask &= bounds[name].no_nulls
            masks[term] = mask if fold is None else fold(term, mask)
            count = len(masks[term])
        assert count is not None
        out = np.ones(count, np.bool_)
        for group in self.rows.anyof:
            of_group = np.zeros(count, np.bool_)
            for term in group:
                if isinstance(term.value, Hashable) and term in masks:
                    of_group |= masks[term]
            out &= of_group
        return out

    def _say(self, index: str, what: str, out: Mask, terms: dict[Term, str]) -> None:
        columns = ", ".join(sorted(set(terms.values())))
        self.report.append(f"{index}: {int(out.sum())} of {len(out)} {what} out, by {columns}")
