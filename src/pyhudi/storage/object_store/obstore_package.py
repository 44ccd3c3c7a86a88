"""The optional package ``obstore``, which is imported at the first use of an object store."""

from __future__ import annotations

import os
import threading
from typing import Any

from pyhudi.errors import SetupError, StorageError
from pyhudi.storage.object_store.object_store_location import ObjectStoreLocation

_memory_guard = threading.Lock()
_memory_stores: dict[str, Any] = {}


def obstore() -> Any:
    """Import and return the package.

    Raises:
        SetupError: It is not installed.
    """
    try:
        import arro3.core  # noqa: F401 - listings come through it
        import obstore
        import obstore.store
    except ImportError as error:
        raise SetupError(
            f"object stores need the packages of the extra 'objectstore' ({error.name} is missing): run pip "
            "install 'pyhudi[objectstore]'"
        ) from error
    return obstore


def obstore_exceptions() -> Any:
    """Return the module of the exceptions of the package, which is installed."""
    import obstore.exceptions

    return obstore.exceptions


def memory_store(location: ObjectStoreLocation) -> Any:
    """Return the store in the memory of this process that has the name of a location.

    Raises:
        StorageError: The location belongs to another process.
    """
    if location.home != os.getpid():
        raise StorageError(
            f"{location.root!r} is in the memory of another process and cannot be accessed from this one"
        )
    with _memory_guard:
        name = location.bucket
        if name not in _memory_stores:
            _memory_stores[name] = obstore().store.MemoryStore()
        return _memory_stores[name]
