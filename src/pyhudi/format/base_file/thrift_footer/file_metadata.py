"""Footer of a Parquet file as Thrift structs: read without interpretation, and written after new contents."""

from __future__ import annotations

from typing import Any

from pyhudi.errors import FormatError
from pyhudi.format.base_file.thrift_footer.thrift_compact import Struct, read_struct, write_struct

MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_TAIL = 1 << 16
"""Bytes read from the end of a file, which usually include the whole footer."""


def read_file_metadata(source: Any) -> Struct | None:
    """Return the footer of a Parquet file (random access); None if it is encrypted.

    Raises:
        FormatError: The file is not a Parquet file, or is corrupt.
    """
    size = source.size()
    tail = source.read_at(min(size, _TAIL), max(0, size - _TAIL))
    if tail[-4:] == _ENCRYPTED:
        return None
    length = int.from_bytes(tail[-8:-4], "little")
    if len(tail) < 12 or tail[-4:] != MAGIC or length + 12 > size:
        raise FormatError(f"not a Parquet file: its {size} bytes end with {tail[-8:]!r}")
    if length + 8 > len(tail):
        tail = source.read_at(length + 8, size - length - 8)
    return read_struct(tail[-8 - length : -8])


def end_of_file(footer: Struct) -> bytes:
    """Return the bytes with which a file of that footer ends."""
    data = write_struct(dict(sorted(footer.items())))
    return data + len(data).to_bytes(4, "little") + MAGIC
