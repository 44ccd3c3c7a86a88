"""Claim of an attempt at a plan, which records to which attempt the instant currently belongs.

A plan may be executed several times under the same instant if attempts fail or are considered dead. The claim is a
small file in ``.hoodie/.aux``, like the fences of the attempts (`pyhudi.timeline.fencing.write_fence`).
"""

from __future__ import annotations

from pyhudi.errors import NotFoundError
from pyhudi.storage import Storage
from pyhudi.timeline.fencing.write_fence import CLAIM_SUFFIX, FENCES_FOLDER

_BEGUN = "begun"


class AttemptClaim:
    """Record of the attempt at a plan to which its instant belongs. Read and changed only under the lock of the table.

    An attempt that claimed the plan and was killed does not determine who started to execute it: the inflight file was
    created by pyhudi only if the claim records this, too.
    """

    def __init__(self, storage: Storage, instant: str, attempt: str = "") -> None:
        self._storage = storage
        self._path = f"{FENCES_FOLDER}/{instant}{CLAIM_SUFFIX}"
        self._mine = attempt
        self._last_rollback = ""

    def take(self, last_rollback: str = "") -> None:
        """Claim the instant for this attempt; ``last_rollback`` is the newest rollback in the timeline."""
        self._last_rollback = last_rollback
        self._write()

    def begin(self) -> None:
        """Record that this attempt has created the inflight file."""
        self._write(_BEGUN)

    def _write(self, *more: str) -> None:
        self._storage.write(self._path, "\n".join([self._mine, self._last_rollback, *more]).encode())

    def is_current(self) -> bool:
        """Return True if no other attempt has claimed the instant since."""
        return self._read()[:1] == [self._mine]

    def exists(self) -> bool:
        """Return True if an attempt of pyhudi has claimed the instant."""
        return bool(self._read())

    def last_rollback(self) -> str | None:
        """Return the newest rollback at the time of the claim; None without a claim, or if its attempt never began."""
        fields = self._read()
        return fields[1] if fields[2:] == [_BEGUN] else None

    def _read(self) -> list[str]:
        """Return attempt, newest rollback and `_BEGUN`; empty without a claim."""
        try:
            return self._storage.read(self._path).decode().split("\n")
        except NotFoundError:
            return []

    def release(self) -> None:
        """Release the claim. Only its owner may do so."""
        self._storage.delete(self._path)
