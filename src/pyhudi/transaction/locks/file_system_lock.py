"""The lock that is a file: whoever creates it holds it, as Apache Hudi's ``FileSystemBasedLockProvider``."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Self

from pyhudi.config import Options, options
from pyhudi.errors import AlreadyExistsError, NotFoundError, PreconditionFailedError, StorageError
from pyhudi.storage import Storage, join_path, open_storage
from pyhudi.transaction.locks.lock_provider import (
    LockProvider,
    LockRetryPolicy,
    dead_holder,
    new_owner,
    writer_name,
)

if TYPE_CHECKING:
    from pyhudi.storage import FileStat

_log = logging.getLogger(__name__)

_given_up: set[str] = set()
"""Owners of this process that have gone, and whose lock files may be there: the storage did not answer them."""


class FileSystemBasedLockProvider(LockProvider):
    """``folder/lock`` exists while somebody holds the lock.

    ``expire_ms``: a lock file older than that may be taken over (0: never, as by default). The file of a process of
    this machine that is known to be dead is taken over in any case; that of a writer that died elsewhere must be
    removed by hand if it does not expire. A take-over is a conditional replacement, so of several that try only one has
    it; the JVM's provider deletes and creates instead, so among its writers an expiring lock is not quite safe.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str = ".hoodie",
        *,
        expire_ms: int = 0,
        retry_policy: LockRetryPolicy | None = None,
    ) -> None:
        super().__init__(retry_policy)
        self._storage = storage
        self._path = join_path(folder, "lock")
        self._expire_ms = expire_ms
        self._owner = new_owner()
        self._held = False

    @classmethod
    def of(cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy) -> Self:
        """From options: ``hoodie.write.lock.filesystem.path`` (a folder anywhere) and ``….expire`` (minutes)."""
        expire_ms = opts.get_typed(options.LOCK_FILESYSTEM_EXPIRE_MIN) * 60_000
        elsewhere = opts.get_typed(options.LOCK_FILESYSTEM_PATH)
        if elsewhere:
            return cls(open_storage(elsewhere, opts), "", expire_ms=expire_ms, retry_policy=retry_policy)
        return cls(storage, expire_ms=expire_ms, retry_policy=retry_policy)

    @property
    def held(self) -> bool:
        return self._held

    def describe(self) -> str:
        where = f"lock file {self._storage.uri(self._path)!r}"
        try:
            found = self._storage.stat(self._path)
            says = "" if found is None else self._storage.read(self._path).decode("utf-8", "replace")
        except NotFoundError:
            found = None
        except StorageError as error:
            return f"{where} (unreadable, {error})"
        if found is None:
            return f"{where} (gone by now)"
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.mtime_ms / 1000))
        return f"{where} (there since {since}; says: {says})"

    @property
    def cure(self) -> str:
        return (
            "wait for the writer that it names; if that is gone for good, delete the file, or set "
            f"{options.LOCK_FILESYSTEM_EXPIRE_MIN.key} to the minutes after which a lock file may be taken over"
        )

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
            return self._try_acquire()
        except StorageError:
            _given_up.add(self._owner)
            raise

    def _try_acquire(self) -> bool:
        try:
            found = self._storage.stat(self._path)
            if found is None:
                self._storage.create(self._path, self._content())
                self._held = True
            else:
                self._held = self._take_over(found)
        except NotFoundError:  # given back while we looked
            return False
        except (AlreadyExistsError, PreconditionFailedError):
            # what was sent twice is in its own way: the first one took effect, the second one was answered
            self._held = self._is_ours()
        except StorageError:
            # the answer may have been lost after the file was made
            if not self._is_ours():
                raise
            self._held = True
        if self._held:
            _given_up.discard(self._owner)
        return self._held

    def _take_over(self, found: FileStat) -> bool:
        """Take the lock of somebody who has it no more; whether that could be. A change since ``found`` was seen makes
        the replacement fail."""
        says = self._storage.read(self._path).decode("utf-8", "replace")
        expired = self._expire_ms and time.time_ns() // 1_000_000 - found.mtime_ms > self._expire_ms
        if not any(owner in says for owner in (self._owner, *_given_up)):
            if not expired and not dead_holder(says):
                return False
            why = "which expired" if expired else "whose writer is dead"
            _log.warning("taking over the %s, %s", self.describe(), why)
        self._storage.replace(self._path, self._content(), found.version)
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
            _given_up.add(self._owner)
            _log.error(
                "the lock file %r could not be removed (%s): writers of other processes wait for it until one of this "
                "process has taken it over, or this process has ended, or it is deleted by hand",
                self._storage.uri(self._path),
                error,
            )
