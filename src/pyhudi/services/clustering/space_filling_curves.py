"""Positions of rows along space-filling curves: z-order and Hilbert curves through the values of several columns.

Every column is divided into ranges with about equally many rows of a sample, so that neither skew nor common prefixes
of texts matter. The coordinates of a row are the numbers of its ranges; its position on the curve is computed from the
bits of the coordinates, for all rows of a batch at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import LayoutStrategy

_MAX_BITS = 12
"""Number of ranges of a column, as a power of two: 4,096, more than the files of any plan."""
_PLACE_BITS = 62

Coordinates = npt.NDArray[np.int64]


def bits_per_column(columns: int) -> int:
    """Return the bits of each coordinate, so that a position fits into a signed 64-bit integer."""
    return max(1, min(_MAX_BITS, _PLACE_BITS // max(1, columns)))


def range_bounds(sample: pa.Array | pa.ChunkedArray, bits: int) -> pa.Array:
    """Return the minimum values of all ranges of a column except the first, sorted, from a sample of its values: up to
    ``2**bits - 1``, fewer if there are fewer values. Nulls and NaNs are in the first range."""
    values = _ordered(pc.drop_null(sample))
    if not len(values):
        return values
    starts = np.arange(1, 1 << bits, dtype=np.int64) * len(values) >> bits
    chosen = pc.unique(values.take(pa.array(np.unique(starts))))
    return chosen.filter(pc.greater(chosen, values[0]))


def assign_ranges(values: pa.Array, lower: pa.Array) -> Coordinates:
    """Return the range number of each value, given `range_bounds`; 0 for nulls and NaNs."""
    range_numbers = np.zeros(len(values), dtype=np.int64)
    valid = _is_ordered(values).to_numpy(zero_copy_only=False)
    if not len(lower) or not valid.any():
        return range_numbers
    ordered = values.filter(pa.array(valid))
    # Bounds and values are sorted together: the number of bounds before a value is its range, for every type.
    merged = pa.concat_arrays([lower, ordered.cast(lower.type)])
    is_bound = np.arange(len(merged)) < len(lower)
    order = pc.sort_indices(merged).to_numpy()  # Stable: a bound precedes equal values.
    passed = np.cumsum(is_bound[order])
    numbers = np.empty(len(merged), dtype=np.int64)
    numbers[order] = passed
    range_numbers[valid] = numbers[len(lower) :]
    return range_numbers


def curve_positions(columns: Sequence[pa.Array], lower: Sequence[pa.Array], layout: LayoutStrategy) -> pa.Array:
    """Return the positions on the curve (int64) of rows with these values; ``lower`` are the `range_bounds` of each
    column."""
    bits = bits_per_column(len(columns))
    coordinates = [assign_ranges(values, known) for values, known in zip(columns, lower, strict=True)]
    # With few ranges only the lowest bits would be used, so spread them over all bits.
    spread = [
        coordinate << (bits - max(1, len(known).bit_length()))
        for coordinate, known in zip(coordinates, lower, strict=True)
    ]
    return pa.array(
        hilbert_positions(spread, bits) if layout is LayoutStrategy.HILBERT else z_order_positions(spread, bits)
    )


def z_order_positions(coordinates: Sequence[Coordinates], bits: int) -> Coordinates:
    """Interleave the bits of coordinates, starting with the first coordinate: positions on a z-order curve."""
    place = np.zeros(len(coordinates[0]), dtype=np.int64)
    for bit in reversed(range(bits)):
        for coordinate in coordinates:
            place = (place << 1) | ((coordinate >> bit) & 1)
    return place


def hilbert_positions(coordinates: Sequence[Coordinates], bits: int) -> Coordinates:
    """Return positions on a Hilbert curve, whose adjacent positions are adjacent in every column.

    After J. Skilling, Programming the Hilbert curve (2004): the coordinates are transformed into the transposed
    position by undoing rotations from the highest bit down, then Gray-coded.
    """
    axes = [np.array(coordinate, dtype=np.int64) for coordinate in coordinates]
    first = axes[0]
    for bit in range(bits - 1, 0, -1):
        high, low = np.int64(1 << bit), np.int64((1 << bit) - 1)
        for axis in axes:
            flips = (axis & high) != 0
            swapped = np.where(flips, 0, (first ^ axis) & low)
            first ^= np.where(flips, low, swapped)
            if axis is not first:
                axis ^= swapped
    for before, axis in itertools.pairwise(axes):
        axis ^= before
    turns = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        turns ^= np.where((axes[-1] & np.int64(1 << bit)) != 0, np.int64((1 << bit) - 1), 0)
    return z_order_positions([axis ^ turns for axis in axes], bits)


def _ordered(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    flat = flat.filter(_is_ordered(flat))
    return flat.take(pc.sort_indices(flat))


def _is_ordered(values: pa.Array) -> pa.Array:
    valid = pc.is_valid(values)
    if not pa.types.is_floating(values.type):
        return valid
    return pc.and_(valid, pc.invert(pc.fill_null(pc.is_nan(values), True)))
