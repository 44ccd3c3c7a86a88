"""Cache of decoded HFile blocks, shared by all readers of a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

DEFAULT_BYTES = 256 * 1024 * 1024


class BlockCache:
    """LRU cache of values by key, bounded in bytes. Thread-safe."""

    def __init__(self, most_bytes: int = DEFAULT_BYTES) -> None:
        self._most = most_bytes
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
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
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Add a value of the given size (bytes), unless the key exists."""
        with self._guard:
            if size <= self._most and key not in self._held:
                self._held[key] = (value, size)
                self._bytes += size
                while self._bytes > self._most:
                    self._bytes -= self._held.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Remove all values."""
        with self._guard:
            self._held.clear()
            self._bytes = 0
