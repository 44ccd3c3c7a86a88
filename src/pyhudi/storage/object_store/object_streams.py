"""Objects as files: random-access reads, and writes of streams of unknown length with bounded memory."""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyhudi.errors import StorageError

if TYPE_CHECKING:
    from typing import Protocol

    class RangeReader(Protocol):
        """Part of ``Storage`` that a reader needs."""

        def read_range(self, path: str, offset: int, length: int) -> bytes: ...


_READ_AHEAD = 256 * 1024
"""Minimum bytes of one request; below, the round trip dominates."""
_PART = 8 * 1024 * 1024
_PARTS_AT_ONCE = 3
"""Number of concurrent parts of a multipart upload, each of `_PART` bytes."""


class ObjectReader(io.RawIOBase):
    """Random access to an object. Each read is one range request, or none if the previous request covered it, or if the
    bytes are among the last ones, ``end``, that were read when the object was opened."""

    def __init__(self, storage: RangeReader, path: str, size: int, end: bytes) -> None:
        self._storage = storage
        self._path = path
        self._size = size
        self._end = end
        self._end_start = size - len(end)
        self._position = 0
        self._ahead_start = 0
        self._ahead = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}, before the start of {self._path!r}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if length == 0:
            return b""
        if self._position >= self._end_start:
            at = self._position - self._end_start
            self._position += length
            return self._end[at : at + length]
        skip = self._position - self._ahead_start
        if not 0 <= skip <= len(self._ahead) - length:
            wanted = min(max(length, _READ_AHEAD), left)
            self._ahead_start = self._position
            self._ahead = self._storage.read_range(self._path, self._position, wanted)
            skip = 0
            if len(self._ahead) < length:
                raise StorageError(f"{self._path!r} was truncated while it was read")
        self._position += length
        return self._ahead if skip == 0 and len(self._ahead) == length else self._ahead[skip : skip + length]

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class Upload(io.RawIOBase):
    """Output stream whose object appears with :meth:`finish` and never after :meth:`abandon`.

    Up to one part is buffered and sent in one request. Longer streams are multipart uploads fed by a thread, with at
    most ``_PARTS_AT_ONCE`` parts in flight and two waiting, so memory is bounded. ``close`` only ends writing; the
    object appears when the ``with`` block ends without an error.
    """

    def __init__(self, library: Any, store: Any, key: str) -> None:
        self._library = library
        self._store = store
        self._key = key
        self._pending = bytearray()
        self._written = 0
        self._parts: queue.Queue[bytes | BaseException | None] = queue.Queue(maxsize=2)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("the output stream is closed")
        view = memoryview(data).cast("B")
        self._pending += view
        self._written += len(view)
        while len(self._pending) > _PART:
            part = bytes(self._pending[:_PART])
            del self._pending[:_PART]
            self._enqueue(part)
        return len(view)

    def finish(self) -> None:
        """Complete the upload, which makes the object visible."""
        self.close()
        if self._thread is None:
            self._library.put(self._store, self._key, bytes(self._pending), use_multipart=False)
            return
        self._enqueue(bytes(self._pending))
        self._enqueue(None)
        self._thread.join()
        self._raise_failure()

    def abandon(self) -> None:
        """Stop, and discard the parts that were sent."""
        self.close()
        self._pending.clear()
        if self._thread is not None:
            self._enqueue(_AbandonedError(), even_if_failed=True)
            self._thread.join()

    def _enqueue(self, part: bytes | BaseException | None, *, even_if_failed: bool = False) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._send, name="pyhudi-upload", daemon=True)
            self._thread.start()
        while True:
            if self._failure is not None:
                if not even_if_failed:
                    self._raise_failure()
                return
            try:
                self._parts.put(part, timeout=0.05)
                return
            except queue.Full:
                continue

    def _raise_failure(self) -> None:
        if self._failure is not None:
            reason = str(self._failure).split("\n\nDebug source", 1)[0]
            raise StorageError(f"upload of {self._key!r} failed: {reason}") from self._failure

    def _send(self) -> None:
        try:
            self._library.put(
                self._store,
                self._key,
                self._received(),
                use_multipart=True,
                chunk_size=_PART,
                max_concurrency=_PARTS_AT_ONCE,
            )
        except BaseException as error:  # Passed on to the writing thread.
            self._failure = error

    def _received(self) -> Iterator[bytes]:
        while True:
            part = self._parts.get()
            if part is None:
                return
            if isinstance(part, BaseException):
                raise part
            if part:
                yield part


class _AbandonedError(Exception):
    """Aborts a multipart upload of the object library."""
