"""Fencing of late tasks: only while the fence of a write is open, its tasks may create data files.

A task may outlive its write: Spark does not wait for the tasks of a failed job, and a task that was considered lost may
still be running. Files that it writes would appear in no plan and no commit. Therefore the fence of a write is closed
before its files are collected to be committed or deleted, and a task checks the fence after it has created a marker and
again after it has finished the file. Either the marker existed when the files were collected, or the task finds the
fence closed and deletes its file.

A plan may be executed several times under the same instant if attempts fail or are considered dead. Therefore every
attempt has its own fence.

Fences, claims (`pyhudi.timeline.fencing.attempt_claim`) and publication intents
(`pyhudi.timeline.fencing.publication_intent`) are small files in ``.hoodie/.aux``. Apache Hudi reads no files with
these names there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyhudi.errors import AlreadyExistsError, TransactionError
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import AUX_FOLDER

FENCES_FOLDER = f"{AUX_FOLDER}/.writing"
CLAIM_SUFFIX = ".claim"
INTENT_SUFFIX = ".publishing"
_INSTANT = re.compile(r"[0-9]+")


class WriteFence:
    """Fence of one instant, or of one attempt to execute it. Can be pickled, so that tasks can check it."""

    def __init__(self, storage: Storage, instant: str, attempt: str = "") -> None:
        self._storage = storage
        self._instant = instant
        self._attempt = attempt
        self._path = f"{FENCES_FOLDER}/{instant}" + (f"_{attempt}" if attempt else "")

    def open(self) -> None:
        """Allow tasks to write. Called by the driver before it starts them."""
        try:
            self._storage.create(self._path, b"")
        except AlreadyExistsError:
            return

    def close(self) -> None:
        """Disallow creating and keeping files from now on. Does nothing if it is already closed."""
        self._storage.delete(self._path)

    @contextmanager
    def reopened(self) -> Iterator[WriteFence]:
        """Open another fence of the same attempt, for tasks that follow after this one was closed. The lock of the
        table is held."""
        again = WriteFence(self._storage, self._instant, f"{self._attempt}again")
        again.open()
        try:
            yield again
        finally:
            again.close()

    def check(self) -> None:
        """Raise an error unless the fence is open.

        Raises:
            TransactionError: The write has ended.
        """
        if not self._storage.exists(self._path):
            raise TransactionError(
                f"the write {self._instant} was committed or rolled back while this task was still running; its "
                "output is discarded. Several writers at a time require hoodie.write.concurrency.mode="
                "OPTIMISTIC_CONCURRENCY_CONTROL"
            )


def close_fences(storage: Storage, instant: str) -> None:
    """Close the fences of all attempts at an instant."""
    storage.delete_many(
        path for path, its in _entries(storage) if its == instant and not path.endswith((CLAIM_SUFFIX, INTENT_SUFFIX))
    )


def remove_fences(storage: Storage, instants: Iterable[str]) -> None:
    """Remove fences and claims of ended instants."""
    over = frozenset(instants)
    storage.delete_many(path for path, its in _entries(storage) if its in over)


def fenced_instants(storage: Storage) -> frozenset[str]:
    """Return the instants that have fences or claims."""
    return frozenset(instant for _, instant in _entries(storage))


def _entries(storage: Storage) -> list[tuple[str, str]]:
    """Return the files with their instants."""
    paths: list[str] = storage.list(FENCES_FOLDER)["path"].to_pylist()
    named = ((path, _INSTANT.match(file_name_of(path))) for path in paths)
    return [(path, match.group()) for path, match in named if match is not None]
