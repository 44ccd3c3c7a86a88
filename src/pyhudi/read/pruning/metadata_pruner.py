"""Pruning by the indexes of the metadata table: a sequence of pruners, each of which knows one index.

Partitions are pruned first, then file slices: by the record index or bloom filters if the filter restricts keys, then
by statistics of files. Each pruner sees what its predecessors leave, and reports its effect, or why it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from pyhudi.config import options
from pyhudi.errors import HudiError
from pyhudi.read.pruning.indexes.bloom_filter_pruner import BloomFilterPruner
from pyhudi.read.pruning.indexes.column_stats_pruner import ColumnStatsPruner
from pyhudi.read.pruning.indexes.expression_index_pruner import ExpressionIndexPruner
from pyhudi.read.pruning.indexes.partition_stats_pruner import PartitionStatsPruner
from pyhudi.read.pruning.indexes.record_index_pruner import RecordIndexPruner
from pyhudi.read.pruning.pruner_protocol import Indexes, PartitionPruner, Predicate, Pruning, SlicePruner
from pyhudi.read.selection.selected_slices import PartitionPruning
from pyhudi.read.selection.table_files import TableFiles

_Entries = TypeVar("_Entries", pa.StringArray, pa.Table)


@dataclass
class MetadataPruner:
    """Pruner of partitions and slices for one query, composed of those of the indexes.

    Attributes:
        files: Files of the table.
        predicate: Predicate of the query.
    """

    files: TableFiles
    predicate: Predicate
    _expressions: ExpressionIndexPruner = field(default_factory=ExpressionIndexPruner, init=False)
    _partition_pruners: Sequence[PartitionPruner] = field(init=False)
    _slice_pruners: Sequence[SlicePruner] = field(init=False)

    def __post_init__(self) -> None:
        record_index, column_stats = RecordIndexPruner(), ColumnStatsPruner()
        self._partition_pruners = (record_index, PartitionStatsPruner(), self._expressions, column_stats)
        self._slice_pruners = (record_index, BloomFilterPruner(), column_stats, self._expressions)

    def prune_partitions(self, partitions: list[str], num_partitions: int) -> PartitionPruning:
        """Return the partitions, given by path, that may have rows of the query.

        Args:
            partitions: The partitions that are left by pruning by path.
            num_partitions: Number of the table's partitions.
        """
        indexes, report = self._usable_indexes(num_partitions)
        if indexes is None or not partitions or not self.predicate.table.config.is_partitioned:
            return PartitionPruning(partitions, num_partitions, report)
        left = pa.array(partitions, pa.string())
        for remaining, pruning in self._prune(left, [one.prune_partitions for one in self._partition_pruners], indexes):
            left, report = remaining, report + pruning.report
        return PartitionPruning(left.to_pylist(), num_partitions, report)

    def prune_slices(self, slices: pa.Table, num_partitions: int) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the slices (`SLICE_SCHEMA`) that may have rows of the query, all of them if the metadata table turns
        out to be unusable; and the lines of the report on each index.

        Args:
            slices: The slices.
            num_partitions: Number of the table's partitions.
        """
        indexes, report = self._usable_indexes(num_partitions)
        if indexes is None or not slices.num_rows:
            return slices, report
        left = slices
        try:
            for remaining, pruning in self._prune(left, [one.prune_slices for one in self._slice_pruners], indexes):
                left, report = remaining, report + pruning.report
        except HudiError as error:
            return slices, (*report, *self._checked(Pruning.not_used("indexes", error)).report)
        return left, report

    def _prune(
        self, entries: _Entries, steps: Iterable[Callable[[_Entries, Predicate, Indexes], Pruning]], indexes: Indexes
    ) -> Iterator[tuple[_Entries, Pruning]]:
        """Yield the result of each step with the entries that are left. Each step sees what its predecessors leave."""
        left = entries
        for prune in steps:
            pruning = self._checked(prune(left, self.predicate, indexes))
            if pruning.listed is not None:
                self.files.keep_listed(pruning.listed)
            if pruning.pruned is not None:
                left = left.filter(pa.array(~pruning.pruned))
            yield left, pruning
            if pruning.is_final:
                return

    def _checked(self, pruning: Pruning) -> Pruning:
        """Return the result of a pruner, after a warning of its failure."""
        if pruning.failure is not None:
            self.files.disable_indexes(pruning.failure)
        return pruning

    def _usable_indexes(self, num_partitions: int) -> tuple[Indexes | None, tuple[str, ...]]:
        """Return the indexes of the metadata table, if they may be used, and lines of the report."""
        implied = self.predicate.filter.implied
        if implied is None or self.predicate.query.is_incremental:
            return None, ()
        if not self.predicate.opts.get_typed(options.DATA_SKIPPING_ENABLE):
            return None, Pruning.not_used("indexes", f"{options.DATA_SKIPPING_ENABLE.key} is false").report
        if self.files.metadata is None:
            return None, Pruning.not_used("indexes", self.files.why).report
        indexes = Indexes(self.files.metadata, num_partitions)
        if implied.anyof:
            return indexes, ()
        expressions, pruning = self._expressions.load(self.predicate, indexes)
        report = self._checked(pruning).report
        if expressions is not None:
            return indexes, report
        why = "the filter has no supported SQL comparison and no condition [(column, op, value), …]"
        return None, (*report, *Pruning.not_used("indexes", why).report)
