"""Pruning by the column statistics of files.

A slice is pruned if, for some term of the filter, none of its files can have a matching value, because merging takes
every value of a row from one of them. Of many partitions, those without any such slice are pruned before slices are
made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.errors import HudiError
from pyhudi.metadata.metadata_layout import COLUMN_STATS
from pyhudi.read.filters.terms import Term
from pyhudi.read.pruning.pruner_protocol import Indexes, Predicate, Pruning
from pyhudi.read.pruning.slice_files import slice_files
from pyhudi.read.pruning.statistics.column_statistics import file_bounds
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds, Mask
from pyhudi.read.pruning.statistics.filter_evaluation import StatisticsEvaluator, matches_no_conjunction
from pyhudi.read.pruning.statistics.partition_files_pruning import partitions_without_matching_files
from pyhudi.table.view.file_slicing import has_log_files

_MANY_PARTITIONS = 32
"""Number of partitions from which files are first pruned partition by partition."""


class ColumnStatsPruner:
    """Pruner of partitions and slices by minima, maxima and null counts of columns in files."""

    def prune_partitions(self, partitions: pa.StringArray, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune partitions, of many, in which no file has a row that the filter accepts."""
        metadata = indexes.metadata
        path_columns = {field.name for field in predicate.table.config.partition_fields}
        terms = {term: name for term, name in predicate.terms.items() if name not in path_columns}
        if len(partitions) < _MANY_PARTITIONS or COLUMN_STATS not in metadata.partitions or not terms:
            return Pruning()
        try:
            without = partitions_without_matching_files(
                metadata,
                predicate.conditions,
                predicate.filter.conjunctions,
                terms=terms,
                partitions=partitions.to_pylist(),
                known_partitions=indexes.num_partitions,
            )
        except HudiError:
            return Pruning()  # The check per slice reports the problem.
        if without is None:
            return Pruning()
        lists, excluded = without
        out = numpy_mask(pc.is_in(partitions, value_set=lists.partitions.filter(pa.array(excluded))))
        return replace(Pruning.by_columns(COLUMN_STATS, "partitions", out, terms.values()), listed=lists)

    def prune_slices(self, slices: pa.Table, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune slices in which no file has a row that the filter accepts."""
        if not slices.num_rows:
            return Pruning()
        if COLUMN_STATS not in indexes.metadata.partitions:
            return Pruning.not_used(COLUMN_STATS, "the metadata table has none")
        terms = predicate.terms
        if not terms:
            return Pruning.not_used(COLUMN_STATS, "no condition on a column that supports statistics")
        statistics = SliceStatistics.from_slices(slices, predicate.conditions, indexes)
        masks, has_none = statistics.masks(terms)
        out = matches_no_conjunction(predicate.filter.conjunctions, masks, slices.num_rows)
        pruning = Pruning.by_columns(COLUMN_STATS, "slices", out, terms.values())
        if not has_none.any():
            return pruning
        line = f"{COLUMN_STATS}: {int(has_none.sum())} of {len(has_none)} files have no statistics"
        return Pruning(out, (*pruning.report, line))


@dataclass(frozen=True, slots=True)
class SliceStatistics:
    """Evaluation of conditions on slices by statistics of their files.

    Attributes:
        slices: The slices.
        files: Their files, with partition and name.
        owner: Row of each file's slice.
        conditions: Evaluation of conditions by statistics.
        indexes: The indexes.
    """

    slices: pa.Table
    files: pa.Table
    owner: np.ndarray[Any, np.dtype[np.int64]]
    conditions: StatisticsEvaluator
    indexes: Indexes

    @classmethod
    def from_slices(cls, slices: pa.Table, conditions: StatisticsEvaluator, indexes: Indexes) -> SliceStatistics:
        """Return the evaluation of conditions on these slices."""
        return cls(slices, *slice_files(slices), conditions, indexes)

    def masks(self, terms: Mapping[Term, str]) -> tuple[dict[Term, Mask], Mask]:
        """Return masks of the slices in which no row satisfies each of some terms, by column statistics; and of the
        files without statistics."""
        partitions: list[str] = sorted(pc.unique(self.slices["partition"]).to_pylist())
        has_none = np.zeros(self.files.num_rows, np.bool_)

        def bounds_of(name: str, data_type: pa.DataType) -> Bounds:
            bounds, has_statistics = file_bounds(
                self.indexes.metadata,
                pa.field(name, data_type),
                self.files,
                partitions=partitions,
                known_partitions=self.indexes.num_partitions,
            )
            has_none[:] |= ~has_statistics
            return bounds

        masks = {
            term: self.mask_of_slices(term, mask) for term, mask in self.conditions.masks(terms, bounds_of).items()
        }
        return self.conditions.without_path_values(masks, terms, self.slices["partition"]), has_none

    def mask_of_slices(self, term: Term, of_files: Mask) -> Mask:
        """Return the mask of the slices in which no row satisfies a term, from that of the files."""
        out: Mask = np.bincount(self.owner[~of_files], minlength=self.slices.num_rows) == 0
        if self.conditions.is_kept_by_merging(term):
            return out
        has_logs: Mask = has_log_files(self.slices).to_numpy(zero_copy_only=False)
        return out & ~has_logs
