"""Indexed expressions in a filter, evaluated by statistics or bloom filters of function values."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.metadata.indexes.expression_index_definition import (
    IDENTITY,
    Expression,
    ExpressionIndex,
    expression_indexes,
)
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.reader.partition_freshness import statistics_are_current
from pyhudi.metadata.records.stats_values import members_of_type
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import implied_predicate
from pyhudi.read.filters.terms import Conjunctions, Term, literal
from pyhudi.read.pruning.indexes.bloom_filter_pruner import slices_without_keys
from pyhudi.read.pruning.statistics.column_statistics import file_bounds, is_ordered_type, partition_bounds
from pyhudi.read.pruning.statistics.comparison_pruning import Mask, cannot_match
from pyhudi.read.pruning.statistics.time_zone_bounds import Zones, in_any_zone, zones_of
from pyhudi.schema.name_resolution import field_type

_MAX_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class KnownExpression:
    """An indexed expression: the type of its values, and whether they depend on time zones."""

    data_type: pa.DataType
    moved: bool
    indexes: tuple[ExpressionIndex, ...]


@dataclass(frozen=True, slots=True)
class UnusedExpression:
    """An expression whose index cannot be used: the type of its values, and the reason."""

    expression: Expression
    data_type: pa.DataType
    why: str


@dataclass(frozen=True, slots=True)
class IndexedExpressions:
    """The indexed expressions in a filter, by the text that represents each in its terms; the filter
    (``conjunctions``); and the reasons why other indexes are not used."""

    by_text: Mapping[str, KnownExpression]
    conjunctions: Conjunctions
    unused: tuple[str, ...]

    @property
    def terms(self) -> list[Term]:
        """Terms of the filter on indexed expressions."""
        return [term for term in self.hashable_terms if term.column in self.by_text]

    @property
    def hashable_terms(self) -> set[Term]:
        """All terms of the filter that masks can be given for."""
        return {term for conjunction in self.conjunctions for term in conjunction if isinstance(term.value, Hashable)}

    @classmethod
    def from_filters(
        cls,
        table: MetadataTable,
        text: RowFilter,
        plain: RowFilter | None,
        schema: pa.Schema,
        non_file_columns: Collection[str],
    ) -> IndexedExpressions | None:
        """Find indexed expressions in a filter: SQL ``text``, or its conditions without indexes (``plain``).

        ``non_file_columns`` are columns whose values are not those of the files. None: no expression is indexed.
        """
        usable_by_text, unused = _usable_expressions(
            expression_indexes(table.storage, table.config), schema, non_file_columns
        )
        conjunctions: Conjunctions = () if plain is None else plain.anyof
        why: tuple[str, ...] = ()
        if text.sql is not None:
            types = {usable.indexes[0].expression: usable.data_type for usable in usable_by_text.values()}
            conjunctions = implied_predicate(text.sql, schema, types) or ()
            all_columns = _columns(
                implied_predicate(
                    text.sql, schema, {**types, **{other.expression: other.data_type for other in unused}}
                )
            )
            why = tuple(other.why for other in unused if str(other.expression) in all_columns)
        columns = _columns(conjunctions)
        used = {name: usable for name, usable in usable_by_text.items() if name in columns}
        return cls(used, conjunctions, why) if used or why else None

    def mask(
        self, term: Term, table: MetadataTable, slices: pa.Table, files: pa.Table, known_partitions: int
    ) -> tuple[Mask, Mask]:
        """Return masks of the files (by statistics) and slices (by bloom filters) in which no row satisfies a term."""
        expression = self.by_text[term.column]
        by_file, by_slice = np.zeros(files.num_rows, np.bool_), np.zeros(slices.num_rows, np.bool_)
        for index in expression.indexes:
            if index.kind != BLOOM_FILTERS:
                by_file |= _outside(
                    term, expression, index, table=table, files=files, known_partitions=known_partitions
                )
                continue
            values = _texts(term)
            if values is not None:
                by_slice |= slices_without_keys(table, values, slices, index.partition)[0]
        return by_file, by_slice

    def indexes_of(self, terms: Iterable[Term]) -> list[ExpressionIndex]:
        """Return the indexes of the terms, ordered by name."""
        indexes = {index.partition: index for term in terms for index in self.by_text[term.column].indexes}
        return [index for _, index in sorted(indexes.items())]

    def partition_masks(
        self, terms: Collection[Term], table: MetadataTable, partitions: pa.Array
    ) -> tuple[dict[Term, Mask], list[str]]:
        """Return a mask of the partitions, given by path, in which no row satisfies each of some terms, by partition
        statistics without nulls; and a line for each unused index: a writer of file statistics may omit partition
        statistics."""
        masks: dict[Term, Mask] = {}
        why: dict[str, str | None] = {}
        for term in terms:
            expression = self.by_text[term.column]
            for index in expression.indexes:
                if index.kind == BLOOM_FILTERS:
                    continue
                if index.partition not in why:
                    why[index.partition] = statistics_are_current(table, index.partition)
                if why[index.partition] is not None:
                    continue
                bounds = partition_bounds(
                    table, index.expression.column, expression.data_type, partitions, index.partition
                )
                out = cannot_match(term, in_any_zone(bounds, index.expression) if expression.moved else bounds)
                masks[term] = masks.get(term, np.zeros(len(partitions), np.bool_)) | (out & bounds.no_nulls)
        return masks, [f"{name}: not used for partitions: {text}" for name, text in why.items() if text is not None]


def _columns(conjunctions: Conjunctions | None) -> set[str]:
    return {term.column for conjunction in conjunctions or () for term in conjunction}


def _usable_expressions(
    indexes: Sequence[ExpressionIndex], schema: pa.Schema, non_file_columns: Collection[str]
) -> tuple[dict[str, KnownExpression], list[UnusedExpression]]:
    """Return the usable indexed expressions, and the others."""
    usable: dict[str, KnownExpression] = {}
    unused: list[UnusedExpression] = []
    for index in indexes:
        expression = index.expression
        source = field_type(schema, expression.column)
        if source is None or expression.column.partition(".")[0] in non_file_columns:
            continue
        name = expression.column if expression.function == IDENTITY else str(expression)
        data_type, zones = expression.type_of(source), zones_of(expression, source)
        why = None
        if zones in (Zones.ROUND, Zones.PARSED):
            why = f"values of {expression} {zones.value}"
        elif expression.function != IDENTITY and name in schema.names:
            why = "there is a column with that name"
        elif not _is_usable(index, data_type, zones):
            why = f"its {index.kind} cannot be used for values of type {data_type}"
        if why is not None:
            unused.append(UnusedExpression(expression, data_type, f"{index.partition}: not used: {why}"))
            continue
        before = usable[name].indexes if name in usable else ()
        usable[name] = KnownExpression(data_type, zones is Zones.MOVED, (*before, index))
    return usable, unused


def _is_usable(index: ExpressionIndex, data_type: pa.DataType, zones: Zones) -> bool:
    if index.kind == BLOOM_FILTERS:
        return bool(pa.types.is_string(data_type)) and zones is Zones.NONE
    return is_ordered_type(data_type) and bool(members_of_type(data_type))


def _outside(
    term: Term,
    expression: KnownExpression,
    index: ExpressionIndex,
    *,
    table: MetadataTable,
    files: pa.Table,
    known_partitions: int,
) -> Mask:
    """Return the files in which no value satisfies a term."""
    partitions: list[str] = sorted(pc.unique(files["partition"]).to_pylist())
    column = pa.field(index.expression.column, expression.data_type)
    bounds, _ = file_bounds(
        table, column, files, partitions=partitions, known_partitions=known_partitions, index=index.partition
    )
    return cannot_match(term, in_any_zone(bounds, index.expression) if expression.moved else bounds)


def _texts(term: Term) -> pa.StringArray | None:
    """Return the texts one of which a term requires; None for other terms."""
    if term.value is None or term.op not in ("=", "==", "in"):
        return None
    values = list(term.value) if term.op == "in" else [term.value]
    if not values or len(values) > _MAX_VALUES:
        return None
    try:
        scalars = [literal(value, pa.string(), term.column) for value in values]
    except QueryError:
        return None
    return pa.array([scalar.as_py() for scalar in scalars], pa.string()) if all(map(_is_text, scalars)) else None


def _is_text(value: pa.Scalar) -> bool:
    return bool(value.is_valid and pa.types.is_string(value.type))
