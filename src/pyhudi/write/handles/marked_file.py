"""Data file to be written by a task: created after its marker, and deleted if the write has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from pyhudi.errors import TransactionError
from pyhudi.storage import Storage, join_path
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.write.settings.write_context import WriteContext


@contextmanager
def open_marked_file(context: WriteContext, partition: str, name: str, io_type: IOType) -> Iterator[BinaryIO]:
    """Open a data file of a write, after its marker is created. After an exception in the block there is no file.

    Raises:
        TransactionError: The write has ended; neither the file nor its marker remains.
    """
    file = MarkedFile(context.storage, context.instant, partition, name, io_type, attempt=context.attempt)
    with context.storage.open_output(file.path) as sink:
        yield sink
    file.check()


class MarkedFile:
    """A data file whose marker is created before the file. ``attempt`` distinguishes attempts at one instant.

    Raises:
        TransactionError: The write has ended; no marker remains.
    """

    def __init__(
        self, storage: Storage, instant: str, partition: str, name: str, io_type: IOType, *, attempt: str = ""
    ) -> None:
        self.path = join_path(partition, name)
        self._partition, self._name, self._io_type = partition, name, io_type
        self._storage = storage
        self._fence = WriteFence(storage, instant, attempt)
        self._markers = Markers(storage, instant)
        self._markers.create(partition, name, io_type)
        self.check()

    def check(self) -> None:
        """Delete the file and its marker if the write has ended without this task. Must be called again when the file
        is finished.

        Raises:
            TransactionError: The write has ended; the file has been deleted.
        """
        try:
            self._fence.check()
        except TransactionError:
            self._storage.delete(self.path)
            self._markers.remove(self._partition, self._name, self._io_type)
            raise
