"""Pruning of partitions without any file that may have matching rows.

With a selective filter this is the case for most partitions. It requires the names of their files and the statistics,
but not the construction of slices: instants, sizes, and sorting by name. If a sample of partitions shows that the
filter is not selective, pruning is left to the step per slice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.reader.file_lists import FileLists
from pyhudi.metadata.reader.metadata_file_listing import file_lists
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.read.filters.terms import Conjunctions, Term
from pyhudi.read.pruning.statistics.column_statistics import ColumnStatistics
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds, Mask
from pyhudi.read.pruning.statistics.filter_evaluation import StatisticsEvaluator, matches_no_conjunction

_CHANGE_FILES = ".cdc"
"""Suffix of the names of change data files, which are not used by row queries."""
_TRIED = 8
"""Number of sampled partitions."""
_WORTH = 0.75
"""Minimum fraction of sampled partitions without matching rows: checking all takes half of the time it saves."""


def partitions_without_matching_files(
    metadata: MetadataTable,
    conditions: StatisticsEvaluator,
    conjunctions: Conjunctions,
    *,
    terms: Mapping[Term, str],
    partitions: list[str],
    known_partitions: int,
) -> tuple[FileLists, Mask] | None:
    """Return the files of partitions, and which of the partitions have none with a matching row; None if this is not
    worthwhile.

    ``terms`` of the filter's ``conjunctions`` are those on columns with statistics, with the names of the columns.

    Raises:
        MetadataTableError: The metadata table cannot be read.
    """

    def prune(paths: list[str]) -> tuple[FileLists, Mask]:
        lists = file_lists(metadata, paths)
        return lists, matches_no_conjunction(
            conjunctions, _masks(metadata, conditions, terms, lists, known_partitions), len(paths)
        )

    tried = partitions[:: max(1, len(partitions) // _TRIED)][:_TRIED]
    if len(partitions) > 2 * _TRIED and prune(tried)[1].mean() < _WORTH:
        return None
    return prune(partitions)


def _masks(
    metadata: MetadataTable,
    conditions: StatisticsEvaluator,
    terms: Mapping[Term, str],
    lists: FileLists,
    known_partitions: int,
) -> dict[Term, Mask]:
    """Return the partitions of ``lists`` that have no file with a row that satisfies each of some terms.

    A term whose columns merging may change is satisfied by any file.
    """
    paths: list[str] = lists.partitions.to_pylist()
    loaded: dict[str, ColumnStatistics] = {}

    def bounds_of(name: str, data_type: pa.DataType) -> Bounds:
        loaded[name] = ColumnStatistics.load(
            metadata, name, data_type, partitions=paths, known_partitions=known_partitions
        )
        return loaded[name].bounds(data_type)

    stored = {term: name for term, name in terms.items() if conditions.is_kept_by_merging(term)}
    masks = conditions.masks(stored, bounds_of)
    places = {
        name: statistics.indices_of_files(lists.names, lists.rows, lists.partitions)
        for name, statistics in loaded.items()
    }
    changes = pc.ends_with(lists.names, _CHANGE_FILES).to_numpy(zero_copy_only=False)
    return {term: _fully_masked_partitions(mask, places[stored[term]], changes, lists) for term, mask in masks.items()}


def _fully_masked_partitions(mask: Mask, places: pa.Array, changes: Mask, lists: FileLists) -> Mask:
    """Return the partitions all of whose relevant files are in a mask of statistics."""
    out = places.is_valid().to_numpy(zero_copy_only=False)
    if len(mask):
        at: npt.NDArray[np.int64] = pc.fill_null(places, 0).to_numpy()
        out = out & mask[at]
    left = lists.rows[~(out | changes)]
    whole: Mask = np.bincount(left, minlength=len(lists.partitions)) == 0
    return whole
