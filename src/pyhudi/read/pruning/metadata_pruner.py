"""Pruning by the indexes of the metadata table. Each step reports its effect, and the reason if it is not used.

Partitions are pruned first (by their paths, then by partition statistics), then file slices: by the record index or
bloom filters if the filter restricts keys, then by file statistics. A slice is pruned if, for some term of the filter,
none of its files can have a matching value, because merging takes every value of a row from one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
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
from pyhudi.read.pruning.indexes.bloom_filter_pruning import slices_without_keys
from pyhudi.read.pruning.indexes.expression_index_pruning import ExpressionIndexPruner
from pyhudi.read.pruning.indexes.record_locations import RecordLocations
from pyhudi.read.pruning.partition_pruning import values_from_path
from pyhudi.read.pruning.slice_files import groups_of, slice_files
from pyhudi.read.pruning.statistics.column_statistics import file_bounds, partition_bounds
from pyhudi.read.pruning.statistics.min_max import Bounds, Mask
from pyhudi.read.pruning.statistics.partition_stats_pruning import partitions_without_matching_files
from pyhudi.read.pruning.statistics.statistics_conditions import StatisticsEvaluator, matches_no_group
from pyhudi.table.view.file_slicing import has_log_files

if TYPE_CHECKING:
    from pyhudi.metadata.reader.metadata_table import MetadataTable
    from pyhudi.read.query.query import Query
    from pyhudi.read.selection.table_files import TableFiles
    from pyhudi.table.pinned_table import PinnedTable

_MANY_PARTITIONS = 32
"""Number of partitions from which files are first pruned partition by partition."""


@dataclass(frozen=True, slots=True)
class PruningFilter:
    """Filter of a query, as indexes apply it.

    Attributes:
        given: The filter; None: all rows match.
        rows: Condition that it implies for every matching row.
        overridden_functions: Names of functions in it that the session has redefined.
    """

    given: RowFilter | None
    rows: RowFilter | None
    overridden_functions: Collection[str] = ()

    @classmethod
    def of(cls, given: RowFilter | None, schema: pa.Schema, overridden_functions: Collection[str]) -> PruningFilter:
        """Return the filter for a table with these columns."""
        rows = None if given is None else given.for_pruning(schema) or given
        return cls(given, rows, overridden_functions)

    @property
    def groups(self) -> Groups:
        """Terms of the condition on rows: those of one group all hold for a matching row."""
        assert self.rows is not None
        return self.rows.anyof


@dataclass
class MetadataPruner:
    """Pruner of partitions and slices for one query.

    Attributes:
        table: The table.
        files: Its files.
        query: The query.
        conditions: Evaluation of conditions by statistics.
        filter: Filter of the query.
        opts: Options of the read.
        report: A line for each index.
        known_partitions: Number of partitions before pruning.
        expressions: Expression indexes that apply to the filter, once they have been looked for.
        keys: Lookup of the records that the filter selects.
    """

    table: PinnedTable
    files: TableFiles
    query: Query
    conditions: StatisticsEvaluator
    filter: PruningFilter
    opts: Options
    report: list[str] = field(default_factory=list, init=False)
    known_partitions: int = field(default=0, init=False)
    expressions: ExpressionIndexPruner | None = field(default=None, init=False)
    keys: RecordLocations = field(init=False)

    def __post_init__(self) -> None:
        rows = self.filter.rows
        self.keys = RecordLocations(self.table, self.files, self.query, self.conditions, rows, self.opts)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return self.conditions.schema

    # --- partitions --------------------------------------------------------------------------------------------------

    def partitions(self, paths: list[str], by_path: Callable[[list[str]], list[str]]) -> list[str]:
        """Return the partitions that may have rows of the query; ``by_path`` prunes by paths alone."""
        self.known_partitions = len(paths)
        kept = by_path(paths)
        metadata = self._usable()
        if metadata is None or not kept or not self.table.config.is_partitioned:
            return kept
        locations = self._locations(metadata, kept)
        if locations is not None:
            mine = set(pc.unique(locations["partition"]).to_pylist())
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
            self.report.append(f"{PARTITION_STATS}: not used: no condition on a column with exact statistics")
            return kept
        paths_kept = pa.array(kept, pa.string())
        try:

            def bounds_of(name: str, kind: pa.DataType) -> Bounds:
                return partition_bounds(metadata, name, kind, paths_kept)

            masks = self._without_values_from_path(
                self.conditions.masks(terms, bounds_of, sure=True), terms, paths_kept
            )
            out = matches_no_group(self.filter.groups, masks, len(kept))
        except HudiError as e:
            self.files.disable_indexes(e)
            self.report.append(f"{PARTITION_STATS}: not used: {e}")
            return kept
        self._report_pruned(PARTITION_STATS, "partitions", out, terms)
        return paths_kept.filter(pa.array(~out)).to_pylist()  # type: ignore[no-any-return]

    def _by_expressions_of_partitions(self, metadata: MetadataTable, kept: list[str]) -> list[str]:
        expressions = self._expressions(metadata)
        if expressions is None or not kept or self.query.as_of is not None:
            return kept
        terms = [term for term in self._of_expressions(expressions) if self.conditions.is_kept_by_merging(term)]
        paths = pa.array(kept, pa.string())
        try:
            masks, why = expressions.of_partitions(terms, metadata, paths)
        except HudiError as e:
            self.files.disable_indexes(e)
            self.report.append(f"expression indexes: not used for partitions: {e}")
            return kept
        self.report += why
        if not masks:
            return kept
        out = matches_no_group(expressions.groups, masks, len(kept))
        self._report_pruned(expressions.names(masks), "partitions", out, {term: term.column for term in masks})
        return paths.filter(pa.array(~out)).to_pylist()  # type: ignore[no-any-return]

    def _by_files(self, metadata: MetadataTable, kept: list[str]) -> list[str]:
        """Return the partitions, of many, with files that may have rows of the query."""
        by_path = {field.name for field in self.table.config.partition_fields}
        terms = {term: name for term, name in self._terms.items() if name not in by_path}
        if len(kept) < _MANY_PARTITIONS or COLUMN_STATS not in metadata.partitions or not terms:
            return kept
        try:
            without = partitions_without_matching_files(
                metadata, self.conditions, self.filter.groups, terms, kept, self.known_partitions
            )
        except HudiError:
            return kept  # The check per slice reports the problem.
        if without is None:
            return kept
        listed, out = without
        metadata.keep_listed(listed)
        self._report_pruned(COLUMN_STATS, "partitions", out, terms)
        return sorted(listed.partitions.filter(pa.array(~out)).to_pylist())

    # --- slices ------------------------------------------------------------------------------------------------------

    def slices(self, slices: pa.Table, known_partitions: int) -> pa.Table:
        """Return the slices (`SLICE_SCHEMA`) that may have rows of the query. ``known_partitions``: number of the
        table's partitions, if they have not been pruned before."""
        self.known_partitions = self.known_partitions or known_partitions
        metadata = self._usable()
        if metadata is None or not slices.num_rows:
            return slices
        try:
            left = self._by_keys(metadata, slices)
            if self.keys.locations is not None:
                return left  # The locations of the records are already known.
            return self._by_expressions(metadata, self._by_statistics(metadata, left))
        except HudiError as e:
            self.files.disable_indexes(e)
            self.report.append(f"indexes: not used: {e}")
            return slices

    def _by_keys(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        locations = self._locations(metadata)
        if locations is not None:
            kept = slices.filter(pc.is_in(groups_of(slices), value_set=groups_of(locations)))
            self.report.append(f"{RECORD_INDEX}: {slices.num_rows - kept.num_rows} of {slices.num_rows} slices out")
            return kept
        keys = self.keys.selected_keys()
        if keys is None:
            return slices
        if BLOOM_FILTERS in metadata.partitions:
            out, num_filters = slices_without_keys(metadata, keys, slices)
            self.report.append(
                f"{BLOOM_FILTERS}: {int(out.sum())} of {slices.num_rows} slices out, {num_filters} filters checked"
            )
            return slices.filter(pa.array(~out))
        return slices

    def _locations(self, metadata: MetadataTable, partitions: list[str] | None = None) -> pa.Table | None:
        """Return the locations of the records that the filter selects, if it restricts keys."""
        locations, report = self.keys.look_up(metadata, partitions)
        self.report += report
        return locations

    def _by_statistics(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        if not slices.num_rows:
            return slices
        if COLUMN_STATS not in metadata.partitions:
            self.report.append(f"{COLUMN_STATS}: not used: the metadata table has none")
            return slices
        terms = self._terms
        if not terms:
            self.report.append(f"{COLUMN_STATS}: not used: no condition on a column that supports statistics")
            return slices
        files, owner = slice_files(slices)
        masks, without = self._masks_by_statistics(metadata, terms, slices, files, owner)
        out = matches_no_group(self.filter.groups, masks, slices.num_rows)
        self._report_pruned(COLUMN_STATS, "slices", out, terms)
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
        """Return the slices in which no row satisfies each of some terms, by column statistics; and the files without
        statistics."""
        partitions: list[str] = sorted(pc.unique(slices["partition"]).to_pylist())
        without = np.zeros(files.num_rows, np.bool_)

        def bounds_of(name: str, kind: pa.DataType) -> Bounds:
            bounds, has_statistics = file_bounds(
                metadata, pa.field(name, kind), files, partitions, self.known_partitions
            )
            without[:] |= ~has_statistics
            return bounds

        masks = self.conditions.masks(terms, bounds_of)
        by_slice = {term: self._by_slice(term, mask, slices, owner) for term, mask in masks.items()}
        return self._without_values_from_path(by_slice, terms, slices["partition"]), without

    def _without_values_from_path(
        self, masks: dict[Term, Mask], terms: Mapping[Term, str], partitions: pa.Array | pa.ChunkedArray
    ) -> dict[Term, Mask]:
        """Return the masks without partitions whose paths determine the value of a column, because statistics describe
        values in files."""
        if not any(self.conditions.is_from_path(name) for name in terms.values()):
            return masks
        paths = pc.unique(partitions)
        path_columns = values_from_path(self.table.config, self.schema, self.conditions.path_values(paths.to_pylist()))
        at = pc.index_in(partitions, value_set=paths).to_numpy()
        counts = {name: each.is_exact.to_numpy(zero_copy_only=False) for name, each in path_columns.items()}
        return {t: mask & ~counts[terms[t]][at] if terms[t] in counts else mask for t, mask in masks.items()}

    def _by_slice(self, term: Term, mask: Mask, slices: pa.Table, owner: np.ndarray[Any, Any]) -> Mask:
        """Return the slices in which no row satisfies a term, from the files in which none does."""
        out: Mask = np.bincount(owner[~mask], minlength=slices.num_rows) == 0
        if self.conditions.is_kept_by_merging(term):
            return out
        has_logs: Mask = has_log_files(slices).to_numpy(zero_copy_only=False)
        return out & ~has_logs

    def _by_expressions(self, metadata: MetadataTable, slices: pa.Table) -> pa.Table:
        expressions = self._expressions(metadata)
        if expressions is None or not slices.num_rows:
            return slices
        self.report += expressions.unused
        terms = {term for group in expressions.groups for term in group if isinstance(term.value, Hashable)}
        mine = self._of_expressions(expressions)
        if not mine:
            return slices
        files, owner = slice_files(slices)
        masks: dict[Term, Mask] = {}
        if COLUMN_STATS in metadata.partitions and not all(
            any(t in mine for t in group) for group in expressions.groups
        ):
            plain = self.conditions.with_statistics(terms - set(mine))
            masks = self._masks_by_statistics(metadata, plain, slices, files, owner)[0]
        used: set[str] = set()
        for term in mine:
            by_file, by_slice, indexes = expressions.mask(term, metadata, slices, files, self.known_partitions)
            masks[term] = self._by_slice(term, by_file, slices, owner) | by_slice
            used.add(indexes)
        out = matches_no_group(expressions.groups, masks, slices.num_rows)
        columns = {term: term.column for term in mine}
        self._report_pruned(", ".join(sorted(used)), "slices", out, columns)
        return slices.filter(pa.array(~out))

    @staticmethod
    def _of_expressions(found: ExpressionIndexPruner) -> list[Term]:
        """Return the conditions on indexed expressions."""
        terms = {term for group in found.groups for term in group if isinstance(term.value, Hashable)}
        return [term for term in terms if term.column in found.by_text]

    def _expressions(self, metadata: MetadataTable) -> ExpressionIndexPruner | None:
        """Return the expression indexes that apply to the filter."""
        filter = self.filter
        if filter.given is None or not any(is_expression(name) for name in metadata.partitions):
            return None
        if filter.overridden_functions:
            names = ", ".join(filter.overridden_functions)
            self._report_once(f"expression indexes: not used: the session has redefined the functions {names}")
            return None
        if self.expressions is None:
            try:
                self.expressions = ExpressionIndexPruner.of(
                    metadata, filter.given, filter.rows, self.schema, self.conditions.non_file_columns
                )
            except HudiError as e:
                self.files.disable_indexes(e)
                return None
        return self.expressions

    # --- conditions --------------------------------------------------------------------------------------------------

    def _usable(self) -> MetadataTable | None:
        """Return the metadata table, if its indexes may be used."""
        rows = self.filter.rows
        if rows is None or self.query.is_incremental:
            return None
        why = None
        if not self.opts.get_typed(options.DATA_SKIPPING_ENABLE):
            why = f"{options.DATA_SKIPPING_ENABLE.key} is false"
        elif self.files.metadata is None:
            why = self.files.why
        elif not rows.anyof and self._expressions(self.files.metadata) is None:
            why = "the filter has no supported SQL comparison and no condition [(column, op, value), …]"
        if why is None:
            return self.files.metadata
        self._report_once(f"indexes: not used: {why}")
        return None

    @property
    def _terms(self) -> dict[Term, str]:
        return self.conditions.with_statistics(term for group in self.filter.groups for term in group)

    def _why_no_partition_stats(self, metadata: MetadataTable) -> str | None:
        if PARTITION_STATS not in metadata.partitions:
            return "the metadata table has none"
        if self.query.as_of is not None:
            return "they describe the latest state"
        return statistics_are_current(metadata, PARTITION_STATS)

    def _report_pruned(self, index: str, what: str, out: Mask, terms: dict[Term, str]) -> None:
        columns = ", ".join(sorted(set(terms.values())))
        self.report.append(f"{index}: {int(out.sum())} of {len(out)} {what} out, by {columns}")

    def _report_once(self, line: str) -> None:
        if line not in self.report:
            self.report.append(line)
