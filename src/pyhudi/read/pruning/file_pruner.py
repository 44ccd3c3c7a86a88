"""Pruning by the indexes of the metadata table; each step reports what it did, and why not more.

Partitions go first (their paths, then statistics of partitions), then file slices: by the record index or bloom filters
where the filter names keys, then by statistics of files. A slice is left out if none of its files can have a value that
meets the filter, term by term: merging takes every value of a row from one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.errors import HudiError
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from pyhudi.metadata.reader.partition_freshness import statistics_are_current
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import Groups
from pyhudi.read.filters.terms import Term
from pyhudi.read.pruning.column_statistics import file_bounds, partition_bounds
from pyhudi.read.pruning.expression_index_pruning import Expressions
from pyhudi.read.pruning.key_lookup import not_in_filters
from pyhudi.read.pruning.min_max import Bounds, Mask
from pyhudi.read.pruning.partition_pruning import told_by_paths
from pyhudi.read.pruning.partition_stats_pruning import partitions_without
from pyhudi.read.pruning.record_locations import RecordLocations
from pyhudi.read.pruning.slice_files import files_of, groups_of
from pyhudi.read.pruning.statistics_conditions import Conditions, matches_no_group

if TYPE_CHECKING:
    from pyhudi.metadata.reader.metadata_table import MetadataTable
    from pyhudi.read.query import Query
    from pyhudi.read.table_files import TableFiles
    from pyhudi.table.pinned_table import PinnedTable

_MANY_PARTITIONS = 32
"""Number of partitions from which on files are pruned partition by partition first."""


@dataclass
class FilePruner:
    """Pruner of partitions and slices for one query; ``report`` has a line for each index.

    ``overridden_functions`` are names of functions in the filter that mean something else to who evaluates it.
    """

    table: PinnedTable
    files: TableFiles
    query: Query
    conditions: Conditions
    given: InitVar[RowFilter | None]
    opts: Options
    report: list[str] = field(default_factory=list)
    known_partitions: int = 0
    overridden_functions: Collection[str] = ()
    rows: RowFilter | None = None
    """Condition implied for every row by the filter that is ``given``."""
    text: RowFilter | None = None
    expressions: Expressions | None = None
    keys: RecordLocations = field(init=False)

    def __post_init__(self, given: RowFilter | None) -> None:
        self.text = given
        self.rows = None if given is None else given.for_pruning(self.schema) or given
        self.keys = RecordLocations(
            self.table, self.files, self.query, self.conditions, self.rows, self.opts, self.report
        )

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.conditions.schema

    # --- partitions --------------------------------------------------------------------------------------------------

    def partitions(self, paths: list[str], by_path: Callable[[list[str]], list[str]]) -> list[str]:
        """The partitions that can have rows of the query; ``by_path`` leaves out what paths alone tell."""
        self.known_partitions = len(paths)
        kept = by_path(paths)
        metadata = self._usable()
        if metadata is None or not kept or not self.table.config.is_partitioned:
            return kept
        places = self.keys.places(metadata, kept)
        if places is not None:
            mine = set(pc.unique(places["partition"]).to_pylist())
            self.report.append(f"{RECORD_INDEX}: {len(kept) - len(mine & set(kept))} of {len(kept)} partitions out")
            return [path for path in kept if path in mine]
        kept = self._by_expressions_of_partitions(metadata, self._by_partition_stats(metadata, kept))
        return self._by_files(metadata, kept)

    def _by_partition_stats(self, metadata: MetadataTable, kept: list[str]) -> list[str]:
        why = self._why_no_partition_stats(metadata)
        if why is not None:
            self.report.append(f"{PARTITION_STATS}: not used: {why}")
            return kept
        terms = {term: name for term, name in self._terms.items() if self.conditions.has_sound_partition_stats(term)}
        if not terms:
            self.report.append(f"{PARTITION_STATS}: not used: no condition on a column whose statistics are sure")
            return kept
        paths_kept = pa.array(kept, pa.string())
        try:

            def bounds_of(name: str, kind: pa.DataType) -> Bounds:
                return partition_bounds(metadata, name, kind, paths_kept)

            masks = self._not_told(self.conditions.masks(terms, bounds_of, sure=True), terms, paths_kept)
            out = matches_no_group(self._groups, masks, len(kept))
        except HudiError as e:
            self.files.disable_indexes(e)
            self.report.append(f"{PARTITION_STATS}: not used: {e}")
            return kept
        self._say(PARTITION_STATS, "partitions", out, terms)
        return paths_kept.filter(pa.array(~out)).to_pylist()  # type: ignore[no-any-return]

    def _by_expressions_of_partitions(self, metadata: MetadataTable, kept: list[str]) -> list[str]:
        found = self._expressions(metadata)
        if found is None or not kept or self.query.as_of is not None:
            return kept
        terms = [term for term in self._of_expressions(found) if self.conditions.is_kept_by_merging(term)]
        paths = pa.array(kept, pa.string())
        try:
            masks, why = found.of_partitions(terms, metadata, paths)
        except HudiError as e:
            self.files.disable_indexes(e)
            self.report.append(f"expression indexes: not used for partitions: {e}")
            return kept
        self.report += why
        if not masks:
            return kept
        out = matches_no_group(found.groups, masks, len(kept))
        self._say(found.names(masks), "partitions", out, {term: term.column for term in masks})
        return paths.filter(pa.array(~out)).to_pylist()  # type: ignore[no-any-return]

    def _by_files(self, metadata: MetadataTable, kept: list[str]) -> list[str]:
        """The partitions, of many, with files that can have rows of the query."""
        by_path = {field.name for field in self.table.config.partition_fields}
        terms = {term: name for term, name in self._terms.items() if name not in by_path}
        if len(kept) < _MANY_PARTITIONS or COLUMN_STATS not in metadata.partitions or not terms:
            return kept
        try:
            found = partitions_without(metadata, self.conditions, self._groups, terms, kept, self.known_partitions)
        except HudiError:
            return kept  # who asks again for each of it says what is wrong
        if found is None:
            return kept
        metadata.listed, out = found
        self._say(COLUMN_STATS, "partitions", out, terms)
        return sorted(metadata.listed.partitions.filter(pa.array(~out)).to_pylist())

    # --- slices ------------------------------------------------------------------------------------------------------

    def slices(self, slices: pa.Table) -> pa.Table:
        """The slices (`SLICE_SCHEMA`) that can have rows of the query."""
        metadata = self._usable()
        if metadata is None or not slices.num_rows:
            return slices
        try:
            left = self._by_keys(metadata, slices)
            if self.keys.found is not None:
                return left  # where the records are is known already
            return self._by_expressions(metadata, self._by_statistics(metadata, left))
        except HudiError as e:
            self.files.disable_indexes(e)
            self.report.append(f"indexes: not used: {e}")
            return slices

    def _by_keys(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        places = self.keys.places(metadata)
        if places is not None:
            kept = slices.filter(pc.is_in(groups_of(slices), value_set=groups_of(places)))
            self.report.append(f"{RECORD_INDEX}: {slices.num_rows - kept.num_rows} of {slices.num_rows} slices out")
            return kept
        keys = self.keys.named()
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
        terms = self._terms
        if not terms:
            self.report.append(f"{COLUMN_STATS}: not used: no condition on a column that can have statistics")
            return slices
        files, owner = files_of(slices)
        masks, without = self._masks_by_statistics(metadata, terms, slices, files, owner)
        out = matches_no_group(self._groups, masks, slices.num_rows)
        self._say(COLUMN_STATS, "slices", out, terms)
        if without.any():
            self.report.append(f"{COLUMN_STATS}: {int(without.sum())} of {files.num_rows} files have no statistics")
        return slices.filter(pa.array(~out))

    def _masks_by_statistics(
        self,
        metadata: MetadataTable,
        terms: Mapping[Term, str],
        slices: pa.Table,
        files: pa.Table,
        owner: np.ndarray[Any, Any],
    ) -> tuple[dict[Term, Mask], Mask]:
        """The slices in which no row meets each of some terms, by column statistics; and the files without any."""
        partitions: list[str] = sorted(pc.unique(slices["partition"]).to_pylist())
        without = np.zeros(files.num_rows, np.bool_)

        def bounds_of(name: str, kind: pa.DataType) -> Bounds:
            bounds, found = file_bounds(metadata, name, kind, files, partitions, self.known_partitions)
            without[:] |= ~found
            return bounds

        masks = self.conditions.masks(terms, bounds_of)
        by_slice = {term: self._by_slice(term, mask, slices, owner) for term, mask in masks.items()}
        return self._not_told(by_slice, terms, slices["partition"]), without

    def _not_told(
        self, masks: dict[Term, Mask], terms: Mapping[Term, str], partitions: pa.Array | pa.ChunkedArray
    ) -> dict[Term, Mask]:
        """The masks less the partitions whose paths tell the value of a column: statistics are of what files hold."""
        if not any(self.conditions.is_told(name) for name in terms.values()):
            return masks
        paths = pc.unique(partitions)
        told = told_by_paths(self.table.config, self.schema, self.conditions.path_values(paths.to_pylist()))
        at = pc.index_in(partitions, value_set=paths).to_numpy()
        counts = {name: each.counts.to_numpy(zero_copy_only=False) for name, each in told.items()}
        return {t: mask & ~counts[terms[t]][at] if terms[t] in counts else mask for t, mask in masks.items()}

    def _by_slice(self, term: Term, mask: Mask, slices: pa.Table, owner: np.ndarray[Any, Any]) -> Mask:
        """The slices in which no row meets a term, from the files in which none does."""
        out: Mask = np.bincount(owner[~mask], minlength=slices.num_rows) == 0
        if self.conditions.is_kept_by_merging(term):
            return out
        has_logs: Mask = pc.greater(pc.list_value_length(slices["log_paths"]), 0).to_numpy(zero_copy_only=False)
        return out & ~has_logs

    def _by_expressions(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        found = self._expressions(metadata)
        if found is None or not slices.num_rows:
            return slices
        self.report += found.unused
        terms = {term for group in found.groups for term in group if isinstance(term.value, Hashable)}
        mine = self._of_expressions(found)
        if not mine:
            return slices
        files, owner = files_of(slices)
        masks: dict[Term, Mask] = {}
        if COLUMN_STATS in metadata.partitions and not all(any(t in mine for t in group) for group in found.groups):
            plain = self.conditions.with_statistics(terms - set(mine))
            masks = self._masks_by_statistics(metadata, plain, slices, files, owner)[0]
        used: set[str] = set()
        for term in mine:
            by_file, by_slice, indexes = found.mask(term, metadata, slices, files, self.known_partitions)
            masks[term] = self._by_slice(term, by_file, slices, owner) | by_slice
            used.add(indexes)
        out = matches_no_group(found.groups, masks, slices.num_rows)
        columns = {term: term.column for term in mine}
        self._say(", ".join(sorted(used)), "slices", out, columns)
        return slices.filter(pa.array(~out))

    @staticmethod
    def _of_expressions(found: Expressions) -> list[Term]:
        """The conditions on expressions that indexes know."""
        terms = {term for group in found.groups for term in group if isinstance(term.value, Hashable)}
        return [term for term in terms if term.column in found.known]

    def _expressions(self, metadata: MetadataTable) -> Expressions | None:
        """Expression indexes that apply to the filter."""
        if self.text is None or not any(is_expression(name) for name in metadata.partitions):
            return None
        if self.overridden_functions:
            names = ", ".join(self.overridden_functions)
            self._say_once(
                f"expression indexes: not used: the session has functions of its own by the names of {names}"
            )
            return None
        if self.expressions is None:
            try:
                self.expressions = Expressions.of(metadata, self.text, self.rows, self.schema, self.conditions.hidden)
            except HudiError as e:
                self.files.disable_indexes(e)
                return None
        return self.expressions

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
        elif not self.rows.anyof and self._expressions(self.files.metadata) is None:
            why = "nothing in the filter is a comparison in SQL, or written as [(column, op, value), …]"
        if why is None:
            return self.files.metadata
        self._say_once(f"indexes: not used: {why}")
        return None

    @property
    def _groups(self) -> Groups:
        assert self.rows is not None
        return self.rows.anyof

    @property
    def _terms(self) -> dict[Term, str]:
        return self.conditions.with_statistics(term for group in self._groups for term in group)

    def _why_no_partition_stats(self, metadata: MetadataTable) -> str | None:
        if PARTITION_STATS not in metadata.partitions:
            return "the metadata table has none"
        if self.query.as_of is not None:
            return "they are those of the latest state"
        return statistics_are_current(metadata, PARTITION_STATS)

    def _say(self, index: str, what: str, out: Mask, terms: dict[Term, str]) -> None:
        columns = ", ".join(sorted(set(terms.values())))
        self.report.append(f"{index}: {int(out.sum())} of {len(out)} {what} out, by {columns}")

    def _say_once(self, line: str) -> None:
        if line not in self.report:
            self.report.append(line)
