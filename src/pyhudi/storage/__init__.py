"""Storage of files: local file systems and object stores behind one protocol.

Takes the URI of a table and returns its backend (:func:`open_storage`), which lists, reads, creates and deletes files.
:mod:`pyhudi.storage.storage_protocol` documents the guarantees of every backend.
"""

from __future__ import annotations

from pyhudi.storage.local_storage import resolved_root
from pyhudi.storage.lock_primitives import InProcessLock, Lock, host_lock, is_remote
from pyhudi.storage.storage_factory import open_sibling, open_storage
from pyhudi.storage.storage_protocol import FileStat, Storage, join_path

__all__ = [
    "FileStat",
    "InProcessLock",
    "Lock",
    "Storage",
    "host_lock",
    "is_remote",
    "join_path",
    "open_sibling",
    "open_storage",
    "resolved_root",
]
