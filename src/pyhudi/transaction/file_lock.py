"""The lock that is a file: whoever creates it holds it, as Apache Hudi's ``FileSystemBasedLockProvider``."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Self

from pyhudi.errors import AlreadyExistsError, NotFoundError, PreconditionFailedError, StorageError
from pyhudi.storage import Storage, join_path, open_storage
from pyhudi.transaction.locks import LockProvider, Patience, new_owner, number, writer_name

PATH_KEY = "hoodie.write.lock.filesystem.path"
EXPIRE_KEY = "hoodie.write.lock.filesystem.expire"

_log = logging.getLogger(__name__)


class FileSystemBasedLockProvider(LockProvider):
    """``folder/lock`` exists while somebody holds the lock.

    ``expire_ms``: a lock file older than that may be taken over (0: never, as by default; then the file of a writer
    that died must be removed by hand). A take-over is a conditional replacement, so of several that try only one has
    it; the JVM's provider deletes and creates instead, so among its writers an expiring lock is not quite safe.
    """

    def __init__(
        self, storage: Storage, folder: str = ".hoodie", *, expire_ms: int = 0, patience: Patience | None = None
    ) -> None:
        super().__init__(patience)
        self._storage = storage
        self._path = join_path(folder, "lock")
        self._expire_ms = expire_ms
        self._owner = new_owner()
        self._held = False

    @classmethod
    def of(cls, storage: Storage, options: Mapping[str, str], patience: Patience) -> Self:
        """From options: ``hoodie.write.lock.filesystem.path`` (a folder anywhere) and ``….expire`` (minutes)."""
        expire_ms = number(options, EXPIRE_KEY, 0) * 60_000
        elsewhere = options.get(PATH_KEY)
        if elsewhere:
            return cls(open_storage(elsewhere, options), "", expire_ms=expire_ms, patience=patience)
        return cls(storage, expire_ms=expire_ms, patience=patience)

    @property
    def held(self) -> bool:
        return self._held

    def describe(self) -> str:
        return f"lock file {self._storage.uri(self._path)!r} (says: {self._says()})"

    def _says(self) -> str:
        try:
            return self._storage.read(self._path).decode("utf-8", "replace")
        except NotFoundError:
            return "nothing, it is gone"
        except StorageError as error:
            return f"unreadable, {error}"

    def _content(self) -> bytes:
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        text = {"lockCreateTime": f"{now} UTC", "lockThreadName": writer_name(), "owner": self._owner}
        return json.dumps(text).encode()

    def _is_ours(self) -> bool:
        try:
            return self._owner.encode() in self._storage.read(self._path)
        except NotFoundError:
            return False

    def try_acquire(self) -> bool:
        if self._held:
            return False
        try:
            found = self._storage.stat(self._path)
            if found is None:
                self._storage.create(self._path, self._content())
            elif self._expire_ms and time.time_ns() // 1_000_000 - found.mtime_ms > self._expire_ms:
                _log.warning("taking over the expired %s", self.describe())
                self._storage.replace(self._path, self._content(), found.version)
            else:
                return False
        except (AlreadyExistsError, PreconditionFailedError):
            return False
        except StorageError:
            # the answer may have been lost after the file was made
            if not self._is_ours():
                raise
        self._held = True
        return True

    def ensure_held(self) -> None:
        if self._held and not self._is_ours():
            self._held = False
        super().ensure_held()

    def release(self) -> None:
        if not self._held:
            return
        self._held = False
        try:
            if self._is_ours():
                self._storage.delete(self._path)
            else:
                _log.warning("lost before it was released: %s", self.describe())
        except StorageError as error:  # what the lock protected is done, so this must not look like its failure
            _log.error("remove the lock file %r by hand: %s", self._storage.uri(self._path), error)
