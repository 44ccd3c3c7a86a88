"""Which of two versions of a record wins, and base batches with the winners put in; all on whole Arrow columns.

The rules are those of Apache Hudi's merge modes. With commit-time ordering the incoming row wins. With event-time
ordering the greater ordering value wins and the incoming row wins ties; several ordering fields compare as a tuple. A
missing ordering value counts as 0 for numbers and as the least value for other types, and a delete without an ordering
value (or with the integer 0, which is how deletes by key are stored) always wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def incoming_wins(base: Sequence[pa.Array], incoming: Sequence[pa.Array], is_delete: Mask) -> Mask:
    """Say for aligned rows whether the incoming one wins by event time.

    ``base`` and ``incoming`` hold the ordering columns, of equal types; ``is_delete`` tells the incoming deletes.
    """
    decided = np.zeros(len(is_delete), dtype=np.bool_)
    wins = np.zeros(len(is_delete), dtype=np.bool_)
    for old, new in zip(base, incoming, strict=True):
        greater, less = _compare(new, old)
        wins |= ~decided & greater
        decided |= greater | less
    return wins | ~decided | (is_delete & without_ordering(incoming))


def without_ordering(ordering: Sequence[pa.Array]) -> Mask:
    """Say for rows whether they carry no ordering value, as a delete by key does."""
    if len(ordering) == 1 and pa.types.is_int32(ordering[0].type):
        return _mask(pc.equal(pc.fill_null(ordering[0], 0), 0))
    result = np.ones(len(ordering[0]) if ordering else 0, dtype=np.bool_)
    for column in ordering:
        result &= _mask(pc.is_null(column))
    return result


def last_winners(positions: Positions, ordering: Sequence[pa.Array], is_delete: Mask) -> Positions:
    """Pick one row for each position, when several incoming rows update the same base row.

    ``positions`` ascend; rows of one position come in the order they arrived. Without ``ordering`` the last one is
    picked, else the one that wins by event time against the others. Returns ascending indexes of the picked rows.
    """
    n = len(positions)
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], positions[1:] != positions[:-1]))).astype(np.int64)
    ends = np.concatenate((starts[1:], [n])).astype(np.int64)
    if not ordering or len(starts) == n:
        return ends - 1
    best = starts.copy()
    # one round per repetition, so the loop runs as often as the most repeated key, not once per row
    for step in range(1, int((ends - starts).max())):
        open_groups = np.flatnonzero(starts + step < ends)
        challenger = starts[open_groups] + step
        holder = best[open_groups]
        wins = incoming_wins(
            [column.take(pa.array(holder)) for column in ordering],
            [column.take(pa.array(challenger)) for column in ordering],
            is_delete[challenger],
        )
        # a holder without ordering value is a commit-time delete: what comes after it always wins
        wins |= is_delete[holder] & without_ordering([column.take(pa.array(holder)) for column in ordering])
        best[open_groups[wins]] = challenger[wins]
    return best


def apply_rows(
    base: pa.RecordBatch, rows: pa.RecordBatch | None, positions: Positions, is_delete: Mask
) -> pa.RecordBatch:
    """Put rows into a base batch of the same schema.

    ``positions`` are distinct and ascending. Where ``is_delete`` is set the base row goes away; the other positions
    get the rows of ``rows`` one after the other (None: there are only deletes).
    """
    picks = np.arange(base.num_rows, dtype=np.int64)
    replaced = positions[~is_delete]
    picks[replaced] = base.num_rows + np.arange(len(replaced))
    if is_delete.any():
        picks = np.delete(picks, positions[is_delete])
    source = base if rows is None or not rows.num_rows else pa.concat_batches([base, rows])
    return source.take(pa.array(picks))


def _compare(left: pa.Array, right: pa.Array) -> tuple[Mask, Mask]:
    """Whether left is greater, and whether it is less, than right."""
    kind = left.type
    if pa.types.is_floating(kind):
        a, b = _float_order(left), _float_order(right)
        return a > b, a < b
    if pa.types.is_boolean(kind):
        left, right = left.cast(pa.int8()), right.cast(pa.int8())
        kind = pa.int8()
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        zero = pa.scalar(0, pa.int8()).cast(kind)
        left, right = pc.fill_null(left, zero), pc.fill_null(right, zero)
        return _mask(pc.greater(left, right)), _mask(pc.less(left, right))
    left_there, right_there = _mask(pc.is_valid(left)), _mask(pc.is_valid(right))
    greater, less = _mask(pc.greater(left, right)), _mask(pc.less(left, right))
    return greater | (left_there & ~right_there), less | (~left_there & right_there)


def _float_order(column: pa.Array) -> npt.NDArray[np.int64]:
    """Integers that order as Java's ``Double.compare`` does: -0.0 before 0.0, NaN above all."""
    values = pc.fill_null(column, 0.0).cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    result: npt.NDArray[np.int64] = np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits)
    return result


def _mask(array: Any) -> Mask:
    """A boolean array without nulls (null is false)."""
    result: Mask = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)
    return result
