"""Lock file: whoever creates it holds the lock, as in Apache Hudi's ``FileSystemBasedLockProvider``."""

from __future__ import annotations

import json
import logging
import time
from typing import Self

from pyhudi.config import Options, options
from pyhudi.errors import AlreadyExistsError, NotFoundError, PreconditionFailedError, StorageError
from pyhudi.storage import FileStat, Storage, join_path, open_storage
from pyhudi.storage.clock import now_ms
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.transaction.locks.lock_provider import LockProvider, LockRetryPolicy, dead_holder, new_owner, writer_name

_log = logging.getLogger(__name__)

_given_up: set[str] = set()
"""Owners of this process that no longer exist, but whose lock files may exist, because the storage did not respond."""


class FileSystemBasedLockProvider(LockProvider):
    """``folder/lock`` exists while the lock is held.

    ``expire_ms``: a lock file older than that may be taken over (0: never, the default). The file of a process of this
    machine that is known to be dead is always taken over; that of a writer killed elsewhere must be deleted manually if
    it does not expire. A takeover is a conditional replacement, so only one of several attempts succeeds. The JVM's
    provider deletes and creates instead, so among its writers an expiring lock is not entirely safe.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str = META_FOLDER,
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
    def from_options(cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy) -> Self:
        """Create the lock from the options ``hoodie.write.lock.filesystem.path`` (any folder) and ``….expire``
        (minutes)."""
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
            stat = self._storage.stat(self._path)
            content = "" if stat is None else self._storage.read(self._path).decode("utf-8", "replace")
        except NotFoundError:
            stat = None
        except StorageError as error:
            return f"{where} (unreadable, {error})"
        if stat is None:
            return f"{where} (no longer exists)"
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(stat.mtime_ms / 1000))
        return f"{where} (created {since}; content: {content or 'none, as if by Apache Hudi'})"

    @property
    def cure(self) -> str:
        return (
            "wait for the writer that created it; if that no longer runs, delete the file, or set "
            f"{options.LOCK_FILESYSTEM_EXPIRE_MIN.key} to the minutes after which a lock file may be taken over"
        )

    def _content(self) -> bytes:
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        text = {"lockCreateTime": f"{now} UTC", "lockThreadName": writer_name(), "owner": self._owner}
        return json.dumps(text).encode()

    def _is_own(self) -> bool:
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
        except BaseException:  # An interrupt, which may come after the file was created.
            self._held = False
            self._give_up()
            raise

    def _try_acquire(self) -> bool:
        try:
            stat = self._storage.stat(self._path)
            if stat is None:
                self._storage.create(self._path, self._content())
                self._held = True
            else:
                self._held = self._take_over(stat)
        except NotFoundError:  # Released in the meantime.
            return False
        except (AlreadyExistsError, PreconditionFailedError):
            # A repeated request fails because of itself: the first one took effect, and the response is that of the
            # second.
            self._held = self._is_own()
        except StorageError:
            # The response may have been lost after the file was created.
            if not self._is_own():
                raise
            self._held = True
        if self._held:
            _given_up.discard(self._owner)
        return self._held

    def _take_over(self, lock_file: FileStat) -> bool:
        """Take over the lock of an owner that no longer holds it. Return False if this fails because the file has
        changed since ``lock_file``."""
        content = self._storage.read(self._path).decode("utf-8", "replace")
        expired = self._expire_ms and now_ms() - lock_file.mtime_ms > self._expire_ms
        if not any(owner in content for owner in (self._owner, *_given_up)):
            if not expired and not dead_holder(content):
                return False
            why = "which expired" if expired else "of a writer that no longer runs"
            _log.warning("taking over the %s, %s", self.describe(), why)
        self._storage.replace(self._path, self._content(), lock_file.version)
        return True

    def ensure_held(self) -> None:
        if self._held and not self._is_own():
            self._held = False
        super().ensure_held()

    def release(self) -> None:
        if not self._held:
            return
        self._held = False
        try:
            if not self._delete_own():
                _log.warning("lost before it was released: %s", self.describe())
        except StorageError as error:  # The protected work is done, so this must not look like its failure.
            _given_up.add(self._owner)
            _log.error(
                "could not remove the lock file %r (%s): writers of other processes wait for it until a lock of "
                "this process has taken it over, this process has ended, or it is deleted manually",
                self._storage.uri(self._path),
                error,
            )
        except BaseException:  # An interrupt, which may come before the file was deleted.
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Delete the lock file after an interrupt. If the storage fails, a lock of this process may take it over."""
        try:
            self._delete_own()
        except StorageError:
            _given_up.add(self._owner)

    def _delete_own(self) -> bool:
        """Delete the lock file if it is this owner's. Return True if it was."""
        if not self._is_own():
            return False
        self._storage.delete(self._path)
        return True
