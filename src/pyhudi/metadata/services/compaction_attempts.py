"""Record of compactions of the metadata table that did not come to their end, so that they are tried ever less often.

A compaction that fails by itself (a file that cannot be read, too little memory, a process that is killed for it) would
fail at the next commit, too. So each attempt is noted before it begins, and forgotten when it is published. Each one
doubles the number of delta commits until the next: 10, 20, 40 … up to 64 times
``hoodie.metadata.compact.max.delta.commits``. The table can be read and written meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyhudi.errors import NotFoundError
from pyhudi.metadata.disable_metadata import METADATA_FOLDER

if TYPE_CHECKING:
    from pyhudi.storage import Storage

ATTEMPTS_FILE = f"{METADATA_FOLDER}/.hoodie/.aux/pyhudi_compaction_attempts.json"
_MOST_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class CompactionAttempts:
    """Attempts since the last compaction that was published.

    Attributes:
        since: Instant of that compaction; empty if there is none.
        count: Number of attempts.
        deltas: Delta commits since that compaction, as counted when the last attempt began.
    """

    since: str = ""
    count: int = 0
    deltas: int = 0

    def next_at(self, due: int) -> int:
        """Number of delta commits at which the next attempt begins, if one is due each ``due`` of them."""
        return due if not self.count else self.deltas + (due << min(self.count - 1, _MOST_DOUBLINGS))

    def begin(self, deltas: int) -> CompactionAttempts:
        """The record with one more attempt."""
        return CompactionAttempts(self.since, self.count + 1, deltas)

    def save(self, storage: Storage) -> None:
        """Write the record."""
        storage.write(ATTEMPTS_FILE, json.dumps(asdict(self)).encode())


def load_attempts(storage: Storage, since: str) -> CompactionAttempts:
    """Return the attempts since the compaction ``since``; none if the record is of another one, or unreadable."""
    try:
        found = CompactionAttempts(**json.loads(storage.read(ATTEMPTS_FILE)))
    except (NotFoundError, ValueError, TypeError):
        return CompactionAttempts(since)
    return found if found.since == since else CompactionAttempts(since)


def forget_attempts(storage: Storage) -> None:
    """Delete the record."""
    storage.delete(ATTEMPTS_FILE)
