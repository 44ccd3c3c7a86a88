"""Conditions of a filter, evaluated by statistics of files or partitions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.keygen.partition_value_extractor import has_known_kinds, partition_fields
from pyhudi.read.filters.terms import Conjunctions, Term
from pyhudi.read.pruning.statistics.column_statistics import is_ordered_type
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds, Mask, cannot_match
from pyhudi.read.schema.column_paths import resolve_column, type_at
from pyhudi.read.schema.partition_values import decode_paths, partition_column_values
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.config.key_generator_type import PartitionKind
from pyhudi.table.config.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class StatisticsEvaluator:
    """Evaluation of conditions on a table's columns by statistics.

    ``path_columns`` have their values from paths. ``unchanged``: columns whose statistics by name are valid; None: all.
    """

    config: TableConfig
    schema: pa.Schema
    path_columns: tuple[str, ...]
    unchanged: frozenset[str] | None

    def masks(
        self, terms: Mapping[Term, str], bounds_of: Callable[[str, pa.DataType], Bounds], *, no_nulls: bool = False
    ) -> dict[Term, Mask]:
        """Return masks of the rows of bounds in which no row satisfies each of some terms; ``no_nulls`` requires that
        there are no nulls."""
        bounds: dict[str, Bounds] = {}
        masks: dict[Term, Mask] = {}
        for term, name in terms.items():
            if name not in bounds:
                bounds[name] = bounds_of(name, self._type(term))
            mask = cannot_match(term, bounds[name])
            masks[term] = mask & bounds[name].no_nulls if no_nulls else mask
        return masks

    def with_statistics(self, terms: Iterable[Term]) -> dict[Term, str]:
        """Return conditions on columns with statistics, with the names of the columns there."""
        names: dict[Term, str] = {}
        for term in terms:
            if not isinstance(term.value, Hashable):
                continue
            try:
                steps = resolve_column(term.column, self.schema)
            except QueryError:
                continue
            name = ".".join(steps)
            if (is_meta_column(name) and name != RECORD_KEY) or steps[0] in self.path_columns or self.is_changed(name):
                continue
            if not is_ordered_type(self._type(term)) or (term.value is None and len(steps) > 1):
                continue
            names[term] = name
        return names

    def is_changed(self, name: str) -> bool:
        """Return True if files may have another column under the name of a column."""
        return self.unchanged is not None and name not in self.unchanged and name != RECORD_KEY

    def is_from_path(self, name: str) -> bool:
        """Return True if paths may determine the values of a column, regardless of files."""
        if not has_known_kinds(self.config):
            return False
        return any(f.name == name and f.kind is PartitionKind.SIMPLE for f in partition_fields(self.config))

    def without_path_values(
        self, masks: dict[Term, Mask], terms: Mapping[Term, str], partitions: pa.Array | pa.ChunkedArray
    ) -> dict[Term, Mask]:
        """Return the masks without entries of partitions whose paths determine the value of a column, because
        statistics describe values in files. ``partitions`` are the paths of the entries."""
        if not any(self.is_from_path(name) for name in terms.values()):
            return masks
        paths = pc.unique(partitions)
        path_columns = partition_column_values(
            self.config, self.schema, decode_paths(self.config, self.schema, paths.to_pylist())
        )
        at = pc.index_in(partitions, value_set=paths).to_numpy()
        exact = {name: each.is_exact.to_numpy(zero_copy_only=False) for name, each in path_columns.items()}
        return {t: mask & ~exact[terms[t]][at] if terms[t] in exact else mask for t, mask in masks.items()}

    @property
    def non_file_columns(self) -> frozenset[str]:
        """Columns whose values are not those of the files."""
        computed = (name for name in self.schema.names if self.is_changed(name) or self.is_from_path(name))
        return frozenset({*self.path_columns, *computed})

    def _type(self, term: Term) -> pa.DataType:
        return type_at(resolve_column(term.column, self.schema), self.schema)

    def has_sound_partition_stats(self, term: Term) -> bool:
        """Return True if partition statistics certainly include every file with values: files without statistics, for
        instance with long texts or NaN, are not included."""
        data_type = self._type(term)
        fixed = pa.types.is_integer(data_type) or pa.types.is_boolean(data_type) or pa.types.is_temporal(data_type)
        return fixed and term.value is not None and "." not in term.column and self.is_kept_by_merging(term)

    def is_kept_by_merging(self, term: Term) -> bool:
        """Return True if the values of merged rows are those of their files. Those of record keys always are."""
        return self.config.has_stored_values_only or term.column in (*self.config.columns_of_key, RECORD_KEY)


def matches_no_conjunction(conjunctions: Conjunctions, masks: Mapping[Term, Mask], count: int) -> Mask:
    """Return a mask of the rows of bounds in which no conjunction can be satisfied."""
    if not conjunctions:
        return np.zeros(count, np.bool_)
    out = np.ones(count, np.bool_)
    for conjunction in conjunctions:
        of_group = np.zeros(count, np.bool_)
        for term in conjunction:
            if isinstance(term.value, Hashable) and term in masks:
                of_group |= masks[term]
        out &= of_group
    return out
