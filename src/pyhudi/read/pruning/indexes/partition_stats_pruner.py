"""Pruning of partitions by partition statistics."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.errors import HudiError
from pyhudi.metadata.metadata_layout import PARTITION_STATS
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.reader.partition_freshness import statistics_are_current
from pyhudi.read.pruning.pruner_protocol import Indexes, Predicate, Pruning
from pyhudi.read.pruning.statistics.column_statistics import partition_bounds
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds
from pyhudi.read.pruning.statistics.filter_evaluation import matches_no_conjunction
from pyhudi.read.query.query import Query


class PartitionStatsPruner:
    """Pruner of partitions by minima and maxima of columns with exact statistics."""

    def prune_partitions(self, partitions: pa.StringArray, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune partitions without a value that the filter accepts."""
        metadata, conditions = indexes.metadata, predicate.conditions
        why = _why_not_usable(metadata, predicate.query)
        if why is not None:
            return Pruning.not_used(PARTITION_STATS, why)
        terms = {term: name for term, name in predicate.terms.items() if conditions.has_sound_partition_stats(term)}
        if not terms:
            return Pruning.not_used(PARTITION_STATS, "no condition on a column with exact statistics")

        def bounds_of(name: str, data_type: pa.DataType) -> Bounds:
            return partition_bounds(metadata, name, data_type, partitions)

        try:
            masks = conditions.masks(terms, bounds_of, no_nulls=True)
            masks = conditions.without_path_values(masks, terms, partitions)
        except HudiError as error:
            return Pruning.not_used(PARTITION_STATS, error)
        out = matches_no_conjunction(predicate.filter.conjunctions, masks, len(partitions))
        return Pruning.by_columns(PARTITION_STATS, "partitions", out, terms.values())


def _why_not_usable(metadata: MetadataTable, query: Query) -> str | None:
    if PARTITION_STATS not in metadata.partitions:
        return "the metadata table has none"
    if query.as_of is not None:
        return "they describe the latest state"
    return statistics_are_current(metadata, PARTITION_STATS)
