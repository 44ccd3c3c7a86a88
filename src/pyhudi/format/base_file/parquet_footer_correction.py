"""Tail of a Parquet file (page indexes and footer), corrected before it is written.

Arrow omits NaN from the minimum and maximum of row groups and pages. Spark considers NaN greater than all numbers and
nevertheless prunes row groups by these values. parquet-java writes no minimum and maximum if there is NaN; neither does
pyhudi.

Arrow annotates all text as STRING. Apache Hudi's files have ENUM for the storage type of blobs.

0.0 and -0.0 are equal, but not when parquet-java looks up a value in the dictionary of a column: Spark would not find
-0.0 by a filter on 0.0. parquet-java looks there only if all pages are declared to be dictionary-encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from pyhudi.format.base_file.non_closing_sink import NonClosingSink
from pyhudi.format.base_file.thrift_footer.file_metadata import end_of_file
from pyhudi.format.base_file.thrift_footer.thrift_compact import (
    Struct,
    ThriftType,
    Value,
    from_int,
    read_struct,
    to_int,
)

# field numbers of parquet.thrift
_SCHEMA, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 2, 4, 5, 6, 10
_ROW_GROUPS, _COLUMNS, _META_DATA, _PATH, _STATISTICS, _ENCODING_STATS = 4, 1, 3, 3, 12, 13
_COLUMN_INDEX = (6, 7)
_ENUM = 4  # both as ConvertedType and as a member of LogicalType
_ENDS = (1, 2, 5, 6, 7, 8)


class TailBuffer(NonClosingSink):
    """A file to write, whose end is withheld after `keep_back`."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._end: bytearray | None = None

    def keep_back(self) -> None:
        """Withhold bytes that are written from now on."""
        self._end = bytearray()

    @property
    def end(self) -> bytes:
        """Return the withheld bytes."""
        return bytes(self._end or b"")

    def write(self, data: bytes) -> None:
        if self._end is None:
            super().write(data)
        else:
            self._end += data

    def tell(self) -> int:
        return super().tell() + len(self._end or b"")


def corrected_tail(
    end: bytes,
    nan: Collection[str],
    zeros: Collection[str],
    enums: Collection[str] = (),
    complete: Callable[[Struct], Struct] | None = None,
) -> bytes:
    """Return the corrected tail of a file with NaN in some columns (dotted paths of leaves), -0.0 in others, and enums
    in others.

    Columns with NaN lose their minimum and maximum; those with -0.0 are no longer declared fully dictionary-encoded.
    ``complete`` returns the corrected footer with what else belongs to it.
    """
    size = int.from_bytes(end[-8:-4], "little")
    footer = read_struct(end[-8 - size : -8])
    for path, element in _leaves(iter(footer[_SCHEMA].data.values)) if enums else ():
        if path in enums:
            element[_CONVERTED] = from_int(ThriftType.I32, _ENUM)
            element[_LOGICAL] = Value(ThriftType.STRUCT, {_ENUM: Value(ThriftType.STRUCT, {})})
    for group in footer[_ROW_GROUPS].data.values:
        for chunk in group[_COLUMNS].data.values:
            described: Struct = chunk[_META_DATA].data
            name = b".".join(described[_PATH].data.values).decode()
            if name in nan:
                _drop_bounds(chunk, described)
            if name in zeros:
                described.pop(_ENCODING_STATS, None)
    return end[: -8 - size] + end_of_file(footer if complete is None else complete(footer))


def _leaves(elements: Iterator[Struct], parent: str | None = None) -> Iterator[tuple[str, Struct]]:
    """Yield the leaves of the next node of a schema, whose nodes are in pre-order, with their dotted paths."""
    node = next(elements)
    path = "" if parent is None else f"{parent}.{node[_NAME].data.decode()}".lstrip(".")
    if _CHILDREN not in node:
        yield path, node
        return
    for _ in range(to_int(node[_CHILDREN])):
        yield from _leaves(elements, path)


def _drop_bounds(chunk: Struct, described: Struct) -> None:
    for field in _COLUMN_INDEX:
        chunk.pop(field, None)
    if _STATISTICS in described:
        for field in _ENDS:
            described[_STATISTICS].data.pop(field, None)
