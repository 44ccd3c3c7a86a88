"""The gate of a running write: while it is open, tasks may begin and finish data files.

A task may outlive its write: Spark does not wait for the tasks of a job that failed, and a task that was given up for
lost may go on somewhere. What such a task still writes would be named by no plan and no commit. So before the files of
a write are gathered, to be committed or to be deleted, its gate is closed; and a task looks at the gate after it made a
marker, and again after it finished the file. Either the marker was there when the files were gathered, or the task
finds the gate closed and takes its file back.

The gate is an empty file in ``.hoodie/.aux``, a folder in which Apache Hudi looks for nothing of that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyhudi.errors import AlreadyExistsError, TransactionError

if TYPE_CHECKING:
    from pyhudi.storage import Storage

GATES_FOLDER = ".hoodie/.aux/.writing"


class WriteGate:
    """The gate of one instant. Pickles, so that tasks can look at it."""

    def __init__(self, storage: Storage, instant: str) -> None:
        self._storage = storage
        self._instant = instant

    @property
    def _path(self) -> str:
        return f"{GATES_FOLDER}/{self._instant}"

    def open(self) -> None:
        """Let tasks write; the driver does so before it starts them."""
        try:
            self._storage.create(self._path, b"")
        except AlreadyExistsError:
            return

    def close(self) -> None:
        """No file is begun or kept from now on; nothing when it is closed already."""
        self._storage.delete(self._path)

    def check(self) -> None:
        """Go on only if the gate is open.

        Raises:
            TransactionError: the write is over.
        """
        if not self._storage.exists(self._path):
            raise TransactionError(
                f"the write {self._instant} was committed or rolled back while this task was still at work; what the "
                "task wrote is not needed"
            )


def open_gates(storage: Storage) -> Iterator[str]:
    """The instants whose gates are open."""
    for path in storage.list(GATES_FOLDER)["path"].to_pylist():
        yield path.rpartition("/")[2]
