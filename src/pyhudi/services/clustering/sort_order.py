"""Order of clustered rows: lexicographic by columns, or along a space-filling curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import LayoutStrategy
from pyhudi.errors import ConfigError
from pyhudi.merge.ordering_values import field_of
from pyhudi.read.schema.column_paths import type_at
from pyhudi.schema.name_resolution import resolve_path
from pyhudi.services.clustering.space_filling_curves import bits_per_column, curve_positions, range_bounds

_PIECE_ROWS = 131_072
_SEED = 1_000_003


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Sort order of rows; false without columns. ``columns`` are top-level names or dotted paths into structs,
    ``sample_size`` is the number of rows sampled to construct a curve."""

    columns: tuple[str, ...]
    layout: LayoutStrategy
    sample_size: int

    @classmethod
    def from_options(cls, schema: pa.Schema, columns: Sequence[str], opts: Options) -> RowOrder:
        """Create the order by columns of a table, with the layout of `hoodie.layout.optimize.strategy`. A curve
        requires several columns: for a single one it equals the order of the column.

        Raises:
            ConfigError: A column does not exist, or has no order.
        """
        columns = tuple(_resolved(schema, name) for name in columns)
        layout = opts.get_typed(options.LAYOUT_STRATEGY)
        if len(columns) < 2:
            layout = LayoutStrategy.LINEAR
        return cls(columns, layout, opts.get_typed(options.LAYOUT_SAMPLE_SIZE))

    def __bool__(self) -> bool:
        return bool(self.columns)

    @property
    def is_curve(self) -> bool:
        """True if rows are sorted by their positions on a curve."""
        return self.layout is not LayoutStrategy.LINEAR

    @property
    def roots(self) -> tuple[str, ...]:
        """Top-level columns with the values."""
        return tuple(dict.fromkeys(name.split(".")[0] for name in self.columns))

    def sorted(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Return the rows in order; all are held in memory."""
        table = pa.Table.from_batches(batches, schema)
        if not table.num_rows:
            return
        keys = self.values(table)
        if self.is_curve:
            step = max(1, table.num_rows // self.sample_size)
            lower = self.bounds(keys.take(pa.array(np.arange(0, table.num_rows, step))))
            indices = pc.sort_indices(self.curve_positions(keys, lower))
        else:
            sort_keys = [(name, "ascending") for name in keys.column_names]
            indices = pc.sort_indices(keys, sort_keys=sort_keys)
        for start in range(0, len(indices), _PIECE_ROWS):
            yield from table.take(indices.slice(start, _PIECE_ROWS)).combine_chunks().to_batches()

    def values(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """Return the values by which rows are sorted, as columns ``0``, ``1``, …"""
        columns = [field_of(rows, name) for name in self.columns]
        return pa.table(columns, names=[str(n) for n in range(len(columns))])

    def sample(self, batches: Iterator[pa.RecordBatch], max_rows: int) -> pa.Table | None:
        """Return approximately ``max_rows`` of the rows' `values`, sampled uniformly; None without rows."""
        parts = [self.values(batch) for batch in batches if batch.num_rows]
        if not parts:
            return None
        joined = pa.concat_tables(parts)
        if joined.num_rows <= max_rows:
            return joined
        chosen = np.random.default_rng(_SEED).choice(joined.num_rows, max_rows, replace=False)
        return joined.take(pa.array(np.sort(chosen)))

    def bounds(self, sample: pa.Table) -> tuple[pa.Array, ...]:
        """Return the range boundaries of the columns, from a sample of `values`."""
        bits = bits_per_column(len(self.columns))
        return tuple(range_bounds(column, bits) for column in sample.columns)

    def curve_positions(self, values: pa.Table, lower: Sequence[pa.Array]) -> pa.Array:
        """Return the positions on the curve (int64) of rows with these `values`."""
        return curve_positions([column.combine_chunks() for column in values.columns], lower, self.layout)


def _resolved(schema: pa.Schema, name: str) -> str:
    """Return the column, or dotted path, of a name in any case.

    Raises:
        ConfigError: There is no such column, or it has no order.
    """
    path = resolve_path(name, schema)
    if path is None:
        raise ConfigError(
            f"the sort column {name!r} does not exist ({options.CLUSTERING_SORT_COLUMNS.key}); the columns "
            f"are: {', '.join(schema.names)}"
        )
    data_type = type_at(path, schema)
    if pa.types.is_nested(data_type):
        raise ConfigError(
            f"the sort column {name!r} ({options.CLUSTERING_SORT_COLUMNS.key}) has type {data_type}, which has "
            "no order; use a nested field"
        )
    return ".".join(path)
