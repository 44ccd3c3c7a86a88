"""The end of a Parquet file (page indexes and footer), changed before it is written.

Arrow leaves NaN out of the least and greatest values of row groups and pages. Spark takes NaN for the greatest of all
numbers and leaves row groups out by those values all the same, whoever reads the table. parquet-java writes no such
values where there is NaN; neither do we.

0.0 and -0.0 are equal, but not to parquet-java where it looks up in a column's dictionary whether any row can have a
value: Spark would not find -0.0 when it is asked for 0.0. It looks only where all pages are said to have dictionaries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyhudi.format.base_file.non_closing_sink import NonClosingSink
from pyhudi.format.base_file.thrift_compact import Struct, read_struct, write_struct

_MAGIC = b"PAR1"
# field numbers of parquet.thrift
_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _STATISTICS, _ENCODING_STATS = 4, 1, 3, 3, 12, 13
_COLUMN_INDEX = (6, 7)
_ENDS = (1, 2, 5, 6, 7, 8)


class TailBuffer(NonClosingSink):
    """A file to write, the end of which is kept back from `keep_back` on."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._end: bytearray | None = None

    def keep_back(self) -> None:
        """Keep what is written from now on."""
        self._end = bytearray()

    @property
    def end(self) -> bytes:
        """Bytes that were held back."""
        return bytes(self._end or b"")

    def write(self, data: bytes) -> None:
        if self._end is None:
            super().write(data)
        else:
            self._end += data

    def tell(self) -> int:
        return super().tell() + len(self._end or b"")


def corrected_tail(end: bytes, nan: Collection[str], zeros: Collection[str]) -> bytes:
    """The end of a file with NaN in some columns (dotted paths of leaves) and -0.0 in some: the first have no least and
    greatest values any more, of the others it is not said that all pages have dictionaries."""
    size = int.from_bytes(end[-8:-4], "little")
    footer = read_struct(end[-8 - size : -8])
    for group in footer[_ROW_GROUPS].data.values:
        for chunk in group[_COLUMNS].data.values:
            described: Struct = chunk[_META_DATA].data
            name = b".".join(described[_PATH].data.values).decode()
            if name in nan:
                _drop_bounds(chunk, described)
            if name in zeros:
                described.pop(_ENCODING_STATS, None)
    changed = write_struct(footer)
    return end[: -8 - size] + changed + len(changed).to_bytes(4, "little") + _MAGIC


def _drop_bounds(chunk: Struct, described: Struct) -> None:
    for field in _COLUMN_INDEX:
        chunk.pop(field, None)
    if _STATISTICS in described:
        for field in _ENDS:
            described[_STATISTICS].data.pop(field, None)
