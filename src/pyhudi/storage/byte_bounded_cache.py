"""Cache of values of a process, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

_DEFAULT_BYTES = 256 * 1024 * 1024


class ByteBoundedCache:
    """LRU cache of values by key, bounded in bytes. Thread-safe."""

    def __init__(self, max_bytes: int = _DEFAULT_BYTES) -> None:
        self._most_bytes = max_bytes
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()

    @property
    def size(self) -> int:
        """Cached bytes."""
        return self._bytes

    def get(self, key: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        """Return the value of a key. If it is missing, ``make`` returns it with its size in bytes."""
        cached = self.find(key)
        if cached is not None:
            return cached
        value, size = make()
        self.put(key, value, size)
        return value

    def find(self, key: Hashable) -> Any:
        """Return the value of a key; None if it is missing."""
        with self._guard:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Add a value of the given size (bytes), unless the key exists."""
        with self._guard:
            if size <= self._most_bytes and key not in self._values:
                self._values[key] = (value, size)
                self._bytes += size
                while self._bytes > self._most_bytes:
                    self._bytes -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Remove all values."""
        with self._guard:
            self._values.clear()
            self._bytes = 0
