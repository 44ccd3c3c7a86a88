"""A binary file that a library may write to but not close."""

from __future__ import annotations

from typing import Any


class NonClosingSink:
    """Binary file whose ``close`` does nothing: the owner of the underlying file closes it."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Leave the file open."""
