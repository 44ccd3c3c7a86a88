"""Pruning by expression indexes: statistics or bloom filters of function values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.errors import HudiError
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.read.filters.terms import Term
from pyhudi.read.pruning.indexes.column_stats_pruner import SliceStatistics
from pyhudi.read.pruning.indexes.indexed_expressions import IndexedExpressions
from pyhudi.read.pruning.pruner_protocol import Indexes, Predicate, Pruning
from pyhudi.read.pruning.statistics.comparison_pruning import Mask
from pyhudi.read.pruning.statistics.filter_evaluation import matches_no_conjunction

_NAME = "expression indexes"


@dataclass(slots=True)
class ExpressionIndexPruner:
    """Pruner of one query by expression indexes, whose definitions are loaded once."""

    _expressions: IndexedExpressions | None = field(default=None, init=False)

    def load(self, predicate: Predicate, indexes: Indexes) -> tuple[IndexedExpressions | None, Pruning]:
        """Return the indexed expressions in the filter, None without any; and the result if they are not used."""
        filter, metadata = predicate.filter, indexes.metadata
        if filter.condition is None or not any(is_expression(name) for name in metadata.partitions):
            return None, Pruning()
        if filter.overridden_functions:
            names = ", ".join(filter.overridden_functions)
            return None, Pruning.not_used(_NAME, f"the session has redefined the functions {names}")
        if self._expressions is None:
            try:
                self._expressions = IndexedExpressions.from_filters(
                    metadata, filter.condition, filter.implied, predicate.schema, predicate.conditions.non_file_columns
                )
            except HudiError as error:
                return None, Pruning(failure=error)
        return self._expressions, Pruning()

    def prune_partitions(self, partitions: pa.StringArray, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune partitions in which no value of an indexed expression satisfies the filter, by statistics."""
        expressions, pruning = self.load(predicate, indexes)
        if expressions is None or not len(partitions) or predicate.query.as_of is not None:
            return pruning
        terms = [term for term in expressions.terms if predicate.conditions.is_kept_by_merging(term)]
        try:
            masks, unused = expressions.partition_masks(terms, indexes.metadata, partitions)
        except HudiError as error:
            return Pruning(report=(f"{_NAME}: not used for partitions: {error}",), failure=error)
        if not masks:
            return Pruning(report=tuple(unused))
        out = matches_no_conjunction(expressions.conjunctions, masks, len(partitions))
        used = ", ".join(i.partition for i in expressions.indexes_of(masks) if i.kind != BLOOM_FILTERS)
        pruning = Pruning.by_columns(used, "partitions", out, (term.column for term in masks))
        return replace(pruning, report=(*unused, *pruning.report))

    def prune_slices(self, slices: pa.Table, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune slices in which no value of an indexed expression satisfies the filter.

        Terms of the filter on columns are evaluated by column statistics, where a conjunction needs both.
        """
        expressions, pruning = self.load(predicate, indexes)
        if expressions is None or not slices.num_rows:
            return pruning
        if not expressions.terms:
            return Pruning(report=expressions.unused)
        statistics = SliceStatistics.from_slices(slices, predicate.conditions, indexes)
        out = matches_no_conjunction(expressions.conjunctions, _masks(expressions, statistics), slices.num_rows)
        used = ", ".join(index.partition for index in expressions.indexes_of(expressions.terms))
        pruning = Pruning.by_columns(used, "slices", out, (term.column for term in expressions.terms))
        return replace(pruning, report=(*expressions.unused, *pruning.report))


def _masks(expressions: IndexedExpressions, statistics: SliceStatistics) -> dict[Term, Mask]:
    """Return for each term of the filter a mask of the slices in which no row satisfies it."""
    terms, indexes = expressions.terms, statistics.indexes
    masks: dict[Term, Mask] = {}
    if COLUMN_STATS in indexes.metadata.partitions and not all(
        any(term in terms for term in conjunction) for conjunction in expressions.conjunctions
    ):
        plain = statistics.conditions.with_statistics(expressions.hashable_terms - set(terms))
        masks, _ = statistics.masks(plain)
    for term in terms:
        of_files, of_slices = expressions.mask(
            term, indexes.metadata, statistics.slices, statistics.files, indexes.num_partitions
        )
        masks[term] = statistics.mask_of_slices(term, of_files) | of_slices
    return masks
