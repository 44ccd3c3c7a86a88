"""Pruning by the indexes of the metadata table: a sequence of pruners, each of which knows one index.

Partitions are pruned first, then file slices: by the record index or bloom filters if the filter restricts keys, then
by statistics of files. Each pruner sees what its predecessors leave, and reports its effect, or why it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from pyhudi.config import options
from pyhudi.errors import HudiError
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.read.pruning.indexes.bloom_filter_pruner import BloomFilterPruner
from pyhudi.read.pruning.indexes.column_stats_pruner import ColumnStatsPruner
from pyhudi.read.pruning.indexes.expression_index_pruner import ExpressionIndexPruner
from pyhudi.read.pruning.indexes.partition_stats_pruner import PartitionStatsPruner
from pyhudi.read.pruning.indexes.record_index_pruner import RecordIndexPruner
from pyhudi.read.pruning.pruner_protocol import Indexes, PartitionPruner, Predicate, Pruning, SlicePruner
from pyhudi.read.selection.table_files import TableFiles

_Entries = TypeVar("_Entries", pa.StringArray, pa.Table)


@dataclass
class MetadataPruner:
    """Pruner of partitions and slices for one query, composed of those of the indexes.

    Attributes:
        files: Files of the table.
        predicate: Predicate of the query.
        report: Lines on each index, in the order of the pruners.
    """

    files: TableFiles
    predicate: Predicate
    report: list[str] = field(default_factory=list, init=False)
    _num_partitions: int = field(default=0, init=False)
    _expressions: ExpressionIndexPruner = field(default_factory=ExpressionIndexPruner, init=False)
    _partition_pruners: Sequence[PartitionPruner] = field(init=False)
    _slice_pruners: Sequence[SlicePruner] = field(init=False)

    def __post_init__(self) -> None:
        record_index, column_stats = RecordIndexPruner(), ColumnStatsPruner()
        self._partition_pruners = (record_index, PartitionStatsPruner(), self._expressions, column_stats)
        self._slice_pruners = (record_index, BloomFilterPruner(), column_stats, self._expressions)

    def prune_partitions(self, partitions: list[str], num_partitions: int) -> list[str]:
        """Return the partitions, given by path, that may have rows of the query.

        Args:
            partitions: The partitions that are left by pruning by path.
            num_partitions: Number of the table's partitions.
        """
        self._num_partitions = num_partitions
        indexes = self._usable_indexes()
        if indexes is None or not partitions or not self.predicate.table.config.is_partitioned:
            return partitions
        steps = [pruner.prune_partitions for pruner in self._partition_pruners]
        return self._pruned(pa.array(partitions, pa.string()), steps, indexes).to_pylist()  # type: ignore[no-any-return]

    def prune_slices(self, slices: pa.Table, num_partitions: int) -> pa.Table:
        """Return the slices (`SLICE_SCHEMA`) that may have rows of the query; all of them if the metadata table turns
        out to be unusable.

        Args:
            slices: The slices.
            num_partitions: Number of the table's partitions, if they have not been pruned before.
        """
        self._num_partitions = self._num_partitions or num_partitions
        indexes = self._usable_indexes()
        if indexes is None or not slices.num_rows:
            return slices
        try:
            return self._pruned(slices, [pruner.prune_slices for pruner in self._slice_pruners], indexes)
        except HudiError as e:
            self._record(Pruning.not_used("indexes", e))
            return slices

    def _pruned(
        self, entries: _Entries, steps: Iterable[Callable[[_Entries, Predicate, Indexes], Pruning]], indexes: Indexes
    ) -> _Entries:
        """Return the entries that no step excludes. Each step sees what its predecessors leave."""
        left = entries
        for prune in steps:
            pruning = prune(left, self.predicate, indexes)
            self._record(pruning)
            if pruning.listed is not None:
                self.files.keep_listed(pruning.listed)
            if pruning.out is not None:
                left = left.filter(pa.array(~pruning.out))
            if pruning.is_final:
                break
        return left

    def _record(self, pruning: Pruning) -> None:
        """Add the lines of a pruner to the report, and warn of a failure."""
        if pruning.failure is not None:
            self.files.disable_indexes(pruning.failure)
        self.report += [line for line in pruning.report if line not in self.report]

    def _usable_indexes(self) -> Indexes | None:
        """Return the indexes of the metadata table, if they may be used."""
        implied = self.predicate.filter.implied
        if implied is None or self.predicate.query.is_incremental:
            return None
        metadata, why = self.files.metadata, None
        if not self.predicate.opts.get_typed(options.DATA_SKIPPING_ENABLE):
            why = f"{options.DATA_SKIPPING_ENABLE.key} is false"
        elif metadata is None:
            why = self.files.why
        elif not implied.anyof and not self._has_indexed_expression(metadata):
            why = "the filter has no supported SQL comparison and no condition [(column, op, value), …]"
        if metadata is not None and why is None:
            return Indexes(metadata, self._num_partitions)
        self._record(Pruning.not_used("indexes", why or ""))
        return None

    def _has_indexed_expression(self, metadata: MetadataTable) -> bool:
        expressions, pruning = self._expressions.load(self.predicate, Indexes(metadata, self._num_partitions))
        self._record(pruning)
        return expressions is not None
