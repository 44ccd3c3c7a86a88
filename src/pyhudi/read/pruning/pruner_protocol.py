"""Protocols of pruners, each of which knows one kind of index of the metadata table.

A pruner receives the partitions or file slices that are left, and the predicate of the query. It returns a mask of
those without a matching row, and its lines of the report of the plan; it changes nothing. So pruners compose: each is
applied to what its predecessors leave (:mod:`pyhudi.read.pruning.metadata_pruner`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import HudiError
from pyhudi.metadata.reader.file_lists import FileLists
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Conjunctions, Term
from pyhudi.read.pruning.statistics.comparison_pruning import Mask
from pyhudi.read.pruning.statistics.filter_evaluation import StatisticsEvaluator
from pyhudi.read.query.query import Query
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True, slots=True)
class PruningFilter:
    """Filter of a query, as indexes apply it.

    Attributes:
        condition: The filter; None: all rows match.
        implied: Condition that it implies for every matching row.
        overridden_functions: Names of functions in it that the session has redefined.
    """

    condition: RowFilter | None
    implied: RowFilter | None
    overridden_functions: Collection[str]

    @classmethod
    def from_filter(
        cls, condition: RowFilter | None, schema: pa.Schema, overridden_functions: Collection[str]
    ) -> PruningFilter:
        """Return the filter for a table with these columns."""
        implied = None if condition is None else condition.for_pruning(schema) or condition
        return cls(condition, implied, overridden_functions)

    @property
    def conjunctions(self) -> Conjunctions:
        """Terms of the condition on rows: those of one conjunction all hold for a matching row."""
        assert self.implied is not None
        return self.implied.anyof


@dataclass(frozen=True, slots=True)
class Predicate:
    """Predicate of a query on a table.

    Attributes:
        table: The table.
        query: The query.
        filter: Filter of the query.
        conditions: Evaluation of conditions by statistics.
        opts: Options of the read.
    """

    table: TableSnapshot
    query: Query
    filter: PruningFilter
    conditions: StatisticsEvaluator
    opts: Options

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return self.conditions.schema

    @property
    def terms(self) -> dict[Term, str]:
        """Terms of the filter on columns that have statistics, with the names of the columns."""
        return self.conditions.with_statistics(term for conjunction in self.filter.conjunctions for term in conjunction)


@dataclass(frozen=True, slots=True)
class Indexes:
    """Indexes of a table, as pruners read them.

    Attributes:
        metadata: The metadata table.
        num_partitions: Number of the table's partitions before pruning.
    """

    metadata: MetadataTable
    num_partitions: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """Result of one pruner.

    Attributes:
        pruned: Mask of the entries without a matching row; None: all entries are kept.
        report: Lines of the report: what was pruned, or why the index is not used.
        is_final: The remaining entries are exactly those of matching records, so that other indexes cannot
            exclude more.
        failure: Error because of which the index is not used.
        listed: Files of the partitions, if the pruner has listed them.
    """

    pruned: Mask | None = None
    report: tuple[str, ...] = ()
    is_final: bool = False
    failure: HudiError | None = None
    listed: FileLists | None = None

    @classmethod
    def by_columns(cls, index: str, what: str, pruned: Mask, columns: Iterable[str]) -> Pruning:
        """Return the result of an index with values of columns; ``what`` names the entries, such as partitions."""
        return cls(pruned, (f"{pruned_line(index, what, pruned)}, by {', '.join(sorted(set(columns)))}",))

    @classmethod
    def not_used(cls, index: str, why: str | HudiError) -> Pruning:
        """Return the result of an index that is not used, with the reason."""
        return cls(report=(f"{index}: not used: {why}",), failure=None if isinstance(why, str) else why)


def pruned_line(index: str, what: str, pruned: Mask) -> str:
    """Return the line of the report on a mask of entries; ``what`` names them, such as partitions."""
    return f"{index}: {int(pruned.sum())} of {len(pruned)} {what} out"


class PartitionPruner(Protocol):
    """Pruner of partitions."""

    def prune_partitions(self, partitions: pa.StringArray, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Return the result for partitions, given by path."""
        ...


class SlicePruner(Protocol):
    """Pruner of file slices."""

    def prune_slices(self, slices: pa.Table, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Return the result for slices (`SLICE_SCHEMA`).

        Raises:
            HudiError: The metadata table cannot be used.
        """
        ...
