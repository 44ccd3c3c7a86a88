"""Files and objects behind one protocol: local file systems and object stores.

:func:`open_storage` gives the backend for a URI; :mod:`pyhudi.storage.base` says what every backend promises.
"""

from __future__ import annotations

from pyhudi.storage.base import LISTING_SCHEMA, FileStat, Storage, join_path
from pyhudi.storage.factory import open_storage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.locking import FolderLock, InProcessLock, Lock, host_lock

__all__ = [
    "LISTING_SCHEMA",
    "FileStat",
    "FolderLock",
    "InProcessLock",
    "LocalStorage",
    "Lock",
    "Storage",
    "host_lock",
    "join_path",
    "open_storage",
]
