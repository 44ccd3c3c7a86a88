"""The lock that is a lease in a JSON object, as Apache Hudi's ``StorageBasedLockProvider`` (1.1 and later).

``{"expired": bool, "validUntil": epoch ms, "owner": text}``. Every change is a conditional put on the version that was
read, so of any number of writers one succeeds. The lease is renewed by a thread; a writer that dies stops renewing,
and the lock is free when ``validUntil`` has passed, or at once where its owner is known to be dead: owners of this
library say which process they are. The object is never deleted.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pyhudi.config import Options, options
from pyhudi.errors import InvalidOptionError, LockError, NotFoundError, PreconditionFailedError, StorageError
from pyhudi.storage import Storage
from pyhudi.transaction.locks.lock_provider import (
    LockProvider,
    LockRetryPolicy,
    dead_holder,
    new_owner,
    writer_name,
)

LOCK_PATH = ".hoodie/.locks/table_lock.json"
#: how far the clocks of two writers may be apart
CLOCK_DRIFT_MS = 500

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of the lock object; ``valid_until`` is epoch milliseconds."""

    expired: bool
    valid_until: int
    owner: str

    def encode(self) -> bytes:
        """The bytes as the JVM's provider writes them."""
        text = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}
        return json.dumps(text, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes, where: str) -> Lease:
        """``LockError`` when the bytes are no lease."""
        try:
            raw = json.loads(data)
            lease = cls(raw["expired"], raw["validUntil"], raw["owner"])
        except (ValueError, KeyError, TypeError) as error:
            raise LockError(f"lock object {where!r} cannot be read ({error!r}); remove it if no writer runs") from error
        if type(lease.expired) is not bool or type(lease.valid_until) is not int or type(lease.owner) is not str:
            raise LockError(
                f"lock object {where!r} has values of wrong types: {data[:200]!r}; remove it if no writer runs"
            )
        return lease


class StorageBasedLockProvider(LockProvider):
    """Holds the lease and renews it every ``renew_s`` seconds for ``validity_s`` more. ``clock``: epoch ms."""

    def __init__(
        self,
        storage: Storage,
        *,
        validity_s: float = 300,
        renew_s: float = 30,
        retry_policy: LockRetryPolicy | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        super().__init__(retry_policy)
        if not 0 < renew_s < validity_s:
            longest = f"{options.LOCK_STORAGE_VALIDITY_SECS.key} ({validity_s:g})"
            raise InvalidOptionError(options.LOCK_STORAGE_RENEW_SECS.key, renew_s, f"more than 0, less than {longest}")
        self._storage = storage
        self._validity_ms = int(validity_s * 1000)
        self._renew_s = renew_s
        self._clock = clock
        self._owner = f"{new_owner()} {writer_name()}"
        self._guard = threading.Lock()
        self._lease: Lease | None = None
        self._version: str | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def of(cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy) -> Self:
        """From the options ``hoodie.write.lock.storage.*``."""
        return cls(
            storage,
            validity_s=opts.get_typed(options.LOCK_STORAGE_VALIDITY_SECS),
            renew_s=opts.get_typed(options.LOCK_STORAGE_RENEW_SECS),
            retry_policy=retry_policy,
        )

    @property
    def held(self) -> bool:
        lease = self._lease
        return lease is not None and self._clock() < lease.valid_until - CLOCK_DRIFT_MS

    def describe(self) -> str:
        where = f"lock object {self._storage.uri(LOCK_PATH)!r}"
        try:
            found = self._read()
        except (StorageError, LockError) as error:
            return f"{where} (unreadable, {error})"
        if not found:
            return f"{where} (absent)"
        until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found[0].valid_until / 1000))
        return f"{where} (valid until {until} unless it is renewed; says: {found[0].encode().decode()})"

    @property
    def cure(self) -> str:
        return "wait for its owner; if that is gone, the lease is not renewed and runs out by itself"

    def _read(self) -> tuple[Lease, str] | None:
        """The lease and a version that is no newer than it: if it changes in between, a put on the version fails."""
        found = self._storage.stat(LOCK_PATH)
        if found is None:
            return None
        try:
            return Lease.decode(self._storage.read(LOCK_PATH), self._storage.uri(LOCK_PATH)), found.version
        except NotFoundError:
            return None

    def try_acquire(self) -> bool:
        with self._guard:
            if self._lease is not None:
                return False
            found = self._read()
            if found and not self._is_free(found[0]):
                return False
            if not self._put(found[1] if found else None, expired=False):
                return False
            self._ended.clear()
            self._start_renewal()
        if not self.held:  # the put took longer than the lease
            self.release()
        return self.held

    def _start_renewal(self) -> None:
        self._thread = threading.Thread(target=self._keep, name="pyhudi-lock-renewal", daemon=True)
        self._thread.start()

    def _is_free(self, lease: Lease) -> bool:
        if lease.expired or lease.valid_until + CLOCK_DRIFT_MS <= self._clock():
            return True
        if lease.owner == self._owner:  # made by an attempt of ours that failed
            return True
        dead = dead_holder(lease.owner)
        if dead:
            _log.warning("taking over the lease of a dead writer: %s", self.describe())
        return dead

    def _put(self, version: str | None, *, expired: bool) -> bool:
        """Put our lease over a version; whether it is there now. Both answers may come although the put took effect
        (it was sent twice, or the answer was lost), so the object is looked at again."""
        lease = Lease(expired, self._clock() + (0 if expired else self._validity_ms), self._owner)
        try:
            self._version = self._storage.replace(LOCK_PATH, lease.encode(), version)
        except StorageError as error:
            found = self._read()
            if found is None or found[0] != lease:
                if isinstance(error, PreconditionFailedError):
                    return False
                raise
            self._version = found[1]
        self._lease = lease
        return True

    def _keep(self) -> None:
        while not self._ended.wait(self._renew_s):
            try:
                if not self.renew():
                    return
            except Exception as error:
                _log.warning("lease of %s not renewed: %s", self._storage.uri(LOCK_PATH), error)
            except BaseException:  # a test's simulated death
                return

    def renew(self) -> bool:
        """Renew the lease; return False when it is not ours any more."""
        with self._guard:
            if self._lease is None:
                return False
            if not self._put(self._version, expired=False):
                self._lease = None
                _log.warning("lost: %s", self.describe())
                return False
            return True

    def release(self) -> None:
        self._ended.set()
        with self._guard:
            if self._lease is not None:
                try:
                    if not self._put(self._version, expired=True):
                        _log.warning("lost before it was released: %s", self.describe())
                except StorageError as error:  # what the lock protected is done; the lease runs out by itself
                    _log.warning("lease of %s not given back: %s", self._storage.uri(LOCK_PATH), error)
                finally:
                    self._lease = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None
