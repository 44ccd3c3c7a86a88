"""A data file that a task is going to write: announced by its marker, and taken back when the write is over."""

from __future__ import annotations

from pyhudi.errors import TransactionError
from pyhudi.storage import Storage, join_path
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.timeline.write_gate import WriteGate


class MarkedFile:
    """A data file whose marker is there before the file is. ``attempt`` tells attempts at one instant apart.

    Raises:
        TransactionError: the write is over; there is no marker then.
    """

    def __init__(
        self, storage: Storage, instant: str, partition: str, name: str, io_type: IOType, *, attempt: str = ""
    ) -> None:
        self.path = join_path(partition, name)
        self._partition, self._name, self._io_type = partition, name, io_type
        self._storage = storage
        self._gate = WriteGate(storage, instant, attempt)
        self._markers = Markers(storage, instant)
        self._markers.create(partition, name, io_type)
        self.check()

    def check(self) -> None:
        """Leave nothing behind when the write has ended without this task: neither the file nor its marker. To be
        called again when the file is finished.

        Raises:
            TransactionError: the write is over; the file has been taken back.
        """
        try:
            self._gate.check()
        except TransactionError:
            self._storage.delete(self.path)
            self._markers.remove(self._partition, self._name, self._io_type)
            raise
