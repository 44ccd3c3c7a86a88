"""Record of failed compactions of the metadata table, with exponential backoff.

A compaction with a permanent cause of failure (an unreadable file, too little memory, a killed process) would fail
again at the next commit. So each attempt is recorded before it begins, and the record is deleted when it is published.
Each attempt doubles the number of delta commits until the next: 10, 20, 40 … up to 64 times
``hoodie.metadata.compact.max.delta.commits``. In the meantime the table can be read and written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pyhudi.errors import NotFoundError
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import METADATA_META_FOLDER

ATTEMPTS_FILE = f"{METADATA_META_FOLDER}/.aux/pyhudi_compaction_attempts.json"
_MAX_DOUBLINGS = 6
"""Number of times that the interval between attempts is doubled, up to 64 times the first one."""


@dataclass(frozen=True, slots=True)
class CompactionAttempts:
    """Attempts since the last published compaction.

    Attributes:
        since: Instant of that compaction; empty if there is none.
        count: Number of attempts.
        deltas: Number of delta commits since that compaction when the last attempt began.
    """

    since: str
    count: int = 0
    deltas: int = 0

    def next_at(self, due: int) -> int:
        """Return the number of delta commits at which the next attempt begins, if one is due every ``due`` of them."""
        return due if not self.count else self.deltas + (due << min(self.count - 1, _MAX_DOUBLINGS))

    def begin(self, deltas: int) -> CompactionAttempts:
        """Return the record with one more attempt."""
        return CompactionAttempts(self.since, self.count + 1, deltas)

    def save(self, storage: Storage) -> None:
        """Write the record."""
        storage.write(ATTEMPTS_FILE, json.dumps(asdict(self)).encode())


def load_attempts(storage: Storage, since: str) -> CompactionAttempts:
    """Return the attempts since the compaction ``since``; none if the record belongs to another one, or is
    unreadable."""
    try:
        attempts = CompactionAttempts(**json.loads(storage.read(ATTEMPTS_FILE)))
    except (NotFoundError, ValueError, TypeError):
        return CompactionAttempts(since)
    return attempts if attempts.since == since else CompactionAttempts(since)


def delete_attempts(storage: Storage) -> None:
    """Delete the record."""
    storage.delete(ATTEMPTS_FILE)
