"""The gate of a running write: while it is open, tasks may begin and finish data files.

A task may outlive its write: Spark does not wait for the tasks of a job that failed, and a task that was given up for
lost may go on somewhere. What such a task still writes would be named by no plan and no commit. So before the files of
a write are gathered, to be committed or to be deleted, its gate is closed; and a task looks at the gate after it made a
marker, and again after it finished the file. Either the marker was there when the files were gathered, or the task
finds the gate closed and takes its file back.

A plan may be carried out more than once under its one instant, as attempts fail or are taken for dead. So every attempt
has a gate of its own, and a claim says which of them the instant belongs to now.

Gates, claims and publication intents are small files in ``.hoodie/.aux``, a folder in which Apache Hudi looks for
nothing of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyhudi.errors import AlreadyExistsError, NotFoundError, TransactionError

if TYPE_CHECKING:
    from pyhudi.storage import Storage

GATES_FOLDER = ".hoodie/.aux/.writing"
_CLAIM = ".claim"
_BEGUN = "begun"
_INTENT = ".publishing"
_NO_GATES = (_CLAIM, _INTENT)
_INSTANT = re.compile(r"[0-9]+")


class WriteGate:
    """The gate of one instant, or of one attempt at it. Pickles, so that tasks can look at it."""

    def __init__(self, storage: Storage, instant: str, attempt: str = "") -> None:
        self._storage = storage
        self._instant = instant
        self._path = f"{GATES_FOLDER}/{instant}" + (f"_{attempt}" if attempt else "")

    def open(self) -> None:
        """Allow tasks to write; called by the driver before it starts them."""
        try:
            self._storage.create(self._path, b"")
        except AlreadyExistsError:
            return

    def close(self) -> None:
        """Refuse new files, and files to be kept, from now on; nothing if closed already."""
        self._storage.delete(self._path)

    def check(self) -> None:
        """Raise an error unless the gate is open.

        Raises:
            TransactionError: the write is over.
        """
        if not self._storage.exists(self._path):
            raise TransactionError(
                f"the write {self._instant} was committed or rolled back while this task was still at work; what the "
                "task wrote is not needed"
            )


class Claim:
    """Says which attempt at a plan its instant belongs to. To be asked and changed under the table's lock alone.

    An attempt that took the plan and died says nothing about who began to carry it out: the inflight file is this
    library's only once the claim says so, too.
    """

    def __init__(self, storage: Storage, instant: str, attempt: str = "") -> None:
        self._storage = storage
        self._path = f"{GATES_FOLDER}/{instant}{_CLAIM}"
        self._mine = attempt
        self._last_rollback = ""

    def take(self, last_rollback: str = "") -> None:
        """Claim the instant for this attempt; ``last_rollback`` is the newest rollback on the timeline."""
        self._last_rollback = last_rollback
        self._write()

    def begin(self) -> None:
        """Say that this attempt has created the inflight file."""
        self._write(_BEGUN)

    def _write(self, *more: str) -> None:
        self._storage.write(self._path, "\n".join([self._mine, self._last_rollback, *more]).encode())

    def is_mine(self) -> bool:
        """Return True if no other attempt has taken it since."""
        return self._read()[:1] == [self._mine]

    def is_there(self) -> bool:
        """Return True if an attempt of this library has taken the instant."""
        return bool(self._read())

    def last_rollback(self) -> str | None:
        """Newest rollback at the time of the claim; None if there is no claim, or its attempt never began."""
        found = self._read()
        return found[1] if found[2:] == [_BEGUN] else None

    def _read(self) -> list[str]:
        """Attempt, newest rollback and `_BEGUN`; empty without a claim."""
        try:
            return self._storage.read(self._path).decode().split("\n")
        except NotFoundError:
            return []

    def release(self) -> None:
        """Give up the claim; only its owner may do so."""
        self._storage.delete(self._path)


class PublicationIntent:
    """Record that the publication of an instant is being sent, kept until its outcome is known.

    A request whose answer is missing may take effect later, when others have published what conflicts with it, and
    nobody looks any more. Whoever has the table's lock and finds the intent at a pending instant settles that first.
    """

    def __init__(self, storage: Storage, instant: str) -> None:
        self._storage = storage
        self._path = f"{GATES_FOLDER}/{instant}{_INTENT}"

    def set(self) -> None:
        """To be done right before the publication."""
        self._storage.write(self._path, b"")

    def is_set(self) -> bool:
        """Return whether a publication has been sent whose outcome nobody has recorded."""
        return self._storage.exists(self._path)

    def remove(self) -> None:
        """To be done when the instant is completed, or its rollback is."""
        self._storage.delete(self._path)


def close_gates(storage: Storage, instant: str) -> None:
    """Close the gates of all attempts at an instant."""
    storage.delete_many(path for path, its in _entries(storage) if its == instant and not path.endswith(_NO_GATES))


def remove_gates(storage: Storage, instants: Iterable[str]) -> None:
    """Remove gates and claims of instants that are over."""
    over = frozenset(instants)
    storage.delete_many(path for path, its in _entries(storage) if its in over)


def gated_instants(storage: Storage) -> frozenset[str]:
    """The instants that have gates or claims."""
    return frozenset(instant for _, instant in _entries(storage))


def _entries(storage: Storage) -> list[tuple[str, str]]:
    """The files, with the instants they belong to."""
    paths: list[str] = storage.list(GATES_FOLDER)["path"].to_pylist()
    named = ((path, _INSTANT.match(path.rpartition("/")[2])) for path in paths)
    return [(path, match.group()) for path, match in named if match is not None]
