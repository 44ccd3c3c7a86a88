"""Rows buffered for the next block, with their positions in the base file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import FormatError


class BufferedRows:
    """Buffers rows and returns all of them, ordered by position if every row has one."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._tables: list[pa.Table] = []
        self._positions: list[pa.Array | None] = []
        self.num_rows = 0
        self.nbytes = 0

    def add(self, rows: pa.RecordBatch | pa.Table, positions: pa.Array | pa.ChunkedArray | None) -> None:
        """Add rows and their positions (null or None: unknown).

        Raises:
            FormatError: The numbers of positions and rows differ.
        """
        if rows.num_rows == 0:
            return
        if positions is not None and len(positions) != rows.num_rows:
            raise FormatError(f"{len(positions)} positions for {rows.num_rows} rows")
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._tables.append(table)
        self._positions.append(positions)
        self.num_rows += rows.num_rows
        self.nbytes += rows.nbytes

    def take(self) -> tuple[pa.Table, npt.NDArray[np.int64] | None]:
        """Return and remove all rows, and their positions if all have different ones: then both are in ascending
        order."""
        table = pa.concat_tables(self._tables).unify_dictionaries().combine_chunks()
        positions = _concatenate_without_nulls(self._positions)
        self._forget()
        if positions is None:
            return table, None
        if len(positions) > 1 and not bool((positions[1:] > positions[:-1]).all()):
            order = np.argsort(positions, kind="stable")
            positions, table = positions[order], table.take(pa.array(order))
        # Several records of one row cannot be represented by a set of positions.
        distinct = bool((positions[1:] > positions[:-1]).all())
        return table, positions if distinct else None


def _concatenate_without_nulls(parts: list[pa.Array | pa.ChunkedArray | None]) -> npt.NDArray[np.int64] | None:
    known = []
    for part in parts:
        if part is None or part.null_count:
            return None
        known.append(part.cast(pa.int64()).to_numpy())
    return np.concatenate(known)
