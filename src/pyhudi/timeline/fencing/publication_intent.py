"""Intent to publish an instant, kept while the outcome of the request is unknown.

The intent is a small file in ``.hoodie/.aux``, like the fence of the write (`pyhudi.timeline.fencing.write_fence`).
"""

from __future__ import annotations

from pyhudi.storage import Storage
from pyhudi.timeline.fencing.write_fence import FENCES_FOLDER, INTENT_SUFFIX


class PublicationIntent:
    """Record that a publication request of the instant is being sent, kept until its outcome is known.

    A request without response may take effect later, when other writers have published conflicting commits and the
    writer no longer checks. Whoever holds the lock of the table and finds the intent of a pending instant must resolve
    it first.
    """

    def __init__(self, storage: Storage, instant: str) -> None:
        self._storage = storage
        self._path = f"{FENCES_FOLDER}/{instant}{INTENT_SUFFIX}"

    def set(self) -> None:
        """Set the intent, immediately before the publication."""
        self._storage.write(self._path, b"")

    def is_set(self) -> bool:
        """Return True if a publication was sent whose outcome has not been recorded."""
        return self._storage.exists(self._path)

    def remove(self) -> None:
        """Remove the intent when the instant is completed or rolled back."""
        self._storage.delete(self._path)
