"""Cache of merged log rows: Parquet files in a folder that the driver and the executors reach.

A slice is added when it is read for the second time, so that a table that is read once is not merged before a query
asks for its rows. The files belong to this process, which removes them when it ends. DataFrames refer to them by name.
Therefore a file is only removed if the cache is full, a later snapshot of the slice was read since, and no query has
used it for an hour.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from pyhudi.config import Options, options
from pyhudi.config.enums import Fsync
from pyhudi.errors import ConfigError, HudiError
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.spark.read.base_files.partition_folders import can_be_mounted
from pyhudi.spark.session_settings import is_connect
from pyhudi.storage import Storage, open_sibling, open_storage
from pyhudi.transaction.locks.lock_provider import dead_holder, writer_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IN_USE_SECONDS = 3600.0
_MAX_REQUESTED = 100_000
"""Maximum number of remembered keys of slices that are not in the cache."""
_TEMPORARY = "pyhudi-log-cache"
_OWNER = ".owner"
"""File with the name of the process to which the folder belongs."""
_caches: dict[str, MergedLogCache] = {}
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class CachedLogs:
    """Files of a slice, as paths in the folder of the cache. ``rows``: merged log rows (None: there are none).
    ``replaced``: numbers of replaced base rows (None: there are none)."""

    rows: str | None
    rows_size: int
    replaced: str | None
    replaced_size: int

    @property
    def size(self) -> int:
        """Size of both files in bytes."""
        return self.rows_size + self.replaced_size

    @property
    def paths(self) -> list[str]:
        """Paths of the existing files."""
        return [path for path in (self.rows, self.replaced) if path is not None]


@dataclass(slots=True)
class _Entry:
    logs: CachedLogs
    file_group: tuple[str, str, str]
    used: float


class MergedLogCache:
    """Files of merged log rows by the keys of slices (`cache_keys`).

    Args:
        storage: Folder of the files.
        capacity: Size of the files in bytes up to which slices are added.
    """

    def __init__(self, storage: Storage, capacity: int) -> None:
        self.storage = storage
        self._capacity = capacity
        self._entries: dict[str, _Entry] = {}
        self._latest: dict[tuple[str, str, str], str] = {}
        self._requested: dict[str, None] = {}
        self._lock = threading.Lock()
        self._claimed = False

    def __len__(self) -> int:
        """Return the number of slices in the cache."""
        return len(self._entries)

    def find(self, keys: Iterable[str]) -> dict[str, CachedLogs]:
        """Return the files of the slices that are in the cache.

        Slices whose files were removed by others are dropped from the cache. Local files are checked individually; of
        other folders, only the file with the owner is.
        """
        cached = {}
        with self._lock:
            if self._entries and not self.storage.exists(_OWNER):
                self._entries.clear()
                self._claimed = False
            local = self.storage.uri().startswith("file:")
            for key in keys:
                entry = self._entries.get(key)
                if entry is not None:
                    if local and not all(self.storage.exists(path) for path in entry.logs.paths):
                        del self._entries[key]
                        continue
                    entry.used = time.monotonic()
                    self._latest[entry.file_group] = key
                    cached[key] = entry.logs
        return cached

    def is_repeated(self, keys: Iterable[str]) -> bool:
        """Return True if all these slices were requested before, and remember them."""
        with self._lock:
            keys = list(keys)
            repeated = all(key in self._requested for key in keys)
            for key in keys:
                self._requested.pop(key, None)  # The latest come last.
                self._requested[key] = None
            for key in list(self._requested)[: max(0, len(self._requested) - _MAX_REQUESTED)]:
                del self._requested[key]
            return repeated

    def add(self, key: str, file_group: tuple[str, str, str], logs: CachedLogs) -> None:
        """Add the files of a slice. ``file_group``: URI of the table, partition and file id."""
        with self._lock:
            if not self._claimed:
                self._claim()
            self._entries[key] = _Entry(logs, file_group, time.monotonic())
            self._latest[file_group] = key

    def has_room(self) -> bool:
        """Return True if slices can be added; removes files of older snapshots if the cache is full."""
        with self._lock:
            size = sum(entry.logs.size for entry in self._entries.values())
            if size < self._capacity:
                return True
            before = time.monotonic() - _IN_USE_SECONDS
            old = [k for k, e in self._entries.items() if e.used < before and self._latest[e.file_group] != k]
            for key in sorted(old, key=lambda k: self._entries[k].used):
                if size < self._capacity:
                    break
                entry = self._entries.pop(key)
                size -= entry.logs.size
                self.storage.delete_many(entry.logs.paths)
            return size < self._capacity

    def _claim(self) -> None:
        """Write the name of this process into the folder."""
        self.storage.write(_OWNER, writer_name().encode())
        self._claimed = True

    def remove_all(self) -> None:
        """Delete the folder."""
        with self._lock, contextlib.suppress(HudiError, OSError):
            self._entries.clear()
            self.storage.delete_tree("")


def merged_log_cache(spark: SparkSession, table: Storage, opts: Options) -> MergedLogCache | None:
    """Return the cache of this process for the folder of the options; None if no folder is known that executors can
    access.

    Without the option, it is a temporary folder if Spark runs on this machine (``local[n]``).

    Raises:
        ConfigError: Spark would parse partition values from the path of the folder.
    """
    capacity = opts.get_typed(options.READ_LOG_CACHE_SIZE)
    folder = opts.get_typed(options.READ_LOG_CACHE_FOLDER)
    if capacity == 0 or (folder is None and not _runs_here(spark)):
        return None
    name = folder or ""
    with _guard:
        cache = _caches.get(name)
        if cache is None:
            cache = _caches[name] = MergedLogCache(_folder(folder, table), capacity)
            atexit.register(cache.remove_all)
        return cache


def _runs_here(spark: SparkSession) -> bool:
    return (
        not is_connect(spark)
        and re.fullmatch(r"local(\[[^]]*\])?", spark.conf.get("spark.master", "") or "") is not None
    )


def _folder(folder: str | None, table: Storage) -> Storage:
    if folder is None:
        remove_abandoned(Path(tempfile.gettempdir()))
        path = tempfile.mkdtemp(prefix=f"{_TEMPORARY}-")
    else:
        path = f"{folder.rstrip('/')}/{_TEMPORARY}-{secrets.token_hex(8)}"
    if "://" in path and not path.startswith("file:"):
        storage = open_sibling(table, path)
    else:
        storage = open_storage(
            path, {options.STORAGE_FSYNC.key: Fsync.NONE.value}
        )  # The files need not survive a power failure.
    root = storage.uri()
    if "=" in root or not can_be_mounted(root):
        raise ConfigError(
            f"{options.READ_LOG_CACHE_FOLDER.key}={folder} has '=' or '/-/' in its path, which Spark would parse as "
            "values of partition columns; use another folder"
        )
    return storage


def remove_abandoned(parent: Path) -> None:
    """Remove temporary folders of killed processes of this user, except those of other containers, which may share the
    parent folder."""
    for path in parent.glob(f"{_TEMPORARY}-*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid() and dead_holder((path / _OWNER).read_text("utf-8", "replace")):
                shutil.rmtree(path)


def cache_keys(table: Storage, context: SliceContext, slices: Iterable[FileSlice]) -> dict[tuple[str, str], str]:
    """Return the cache key of each slice by partition and file id. It depends on everything that determines the merged
    rows: the files and the settings of the merge."""
    whole = hashlib.sha256(table.uri().encode())
    whole.update(cloudpickle.dumps([getattr(context, f.name) for f in fields(context) if f.name != "storage"]))
    digests = {}
    for file_slice in slices:
        digest = whole.copy()
        digest.update(cloudpickle.dumps(file_slice))
        digests[file_slice.partition, file_slice.file_id] = digest.hexdigest()[:32]
    return digests
