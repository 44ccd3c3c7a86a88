"""Leases as they are stored, for tests."""

from __future__ import annotations

import json

from pyhudi.storage import Storage
from pyhudi.transaction.locks.storage_based_lock import LOCK_PATH


def lease(storage: Storage) -> dict[str, object]:
    found = json.loads(storage.read(LOCK_PATH))
    assert isinstance(found, dict)
    return found
