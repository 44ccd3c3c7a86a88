"""Lock by a lease in a JSON object, as in Apache Hudi's ``StorageBasedLockProvider`` (1.1 and later).

``{"expired": bool, "validUntil": epoch ms, "owner": text}``. Every change is a conditional put on the version that was
read, so of several writers one succeeds. A thread renews the lease; a killed writer no longer renews, and the lock is
free when ``validUntil`` has passed, or immediately if its owner is known to be dead: owners in pyhudi contain their
process. The object is never deleted. What happens to the lease can be audited (`pyhudi.transaction.locks.lock_audit`).
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
from pyhudi.storage.clock import now_ms
from pyhudi.storage.table_paths import LOCKS_FOLDER
from pyhudi.transaction.locks.lock_audit import AuditState, LockAudit, is_audit_enabled
from pyhudi.transaction.locks.lock_provider import LockProvider, LockRetryPolicy, dead_holder, new_owner, writer_name

LOCK_PATH = f"{LOCKS_FOLDER}/table_lock.json"
CLOCK_DRIFT_MS = 500
"""Maximum clock skew between two writers."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lease:
    """Content of the lock object; ``valid_until`` is in epoch milliseconds."""

    expired: bool
    valid_until: int
    owner: str

    def encode(self) -> bytes:
        """Return the bytes as written by the JVM's provider."""
        text = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}
        return json.dumps(text, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes, where: str) -> Lease:
        """Parse a lease. Raises ``LockError`` for invalid bytes."""
        try:
            raw = json.loads(data)
            lease = cls(raw["expired"], raw["validUntil"], raw["owner"])
        except (ValueError, KeyError, TypeError) as error:
            raise LockError(
                f"cannot read lock object {where!r} ({error!r}); remove it if no writer is running"
            ) from error
        if type(lease.expired) is not bool or type(lease.valid_until) is not int or type(lease.owner) is not str:
            raise LockError(
                f"lock object {where!r} has values of wrong types: {data[:200]!r}; remove it if no writer is running"
            )
        return lease


class StorageBasedLockProvider(LockProvider):
    """Holds the lease and renews it every ``renew_s`` seconds for another ``validity_s``. ``clock``: epoch ms."""

    def __init__(
        self,
        storage: Storage,
        *,
        validity_s: float = 300,
        renew_s: float = 30,
        retry_policy: LockRetryPolicy | None = None,
        clock: Callable[[], int] = now_ms,
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
        self._is_audited: bool | None = None
        self._audit: LockAudit | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def from_options(cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy) -> Self:
        """Create the lock from the options ``hoodie.write.lock.storage.*``.

        Raises:
            InvalidOptionError: The lock is renewed less than ten times within its validity, which Apache Hudi refuses,
                too.
        """
        validity, renewal = options.LOCK_STORAGE_VALIDITY_SECS, options.LOCK_STORAGE_RENEW_SECS
        validity_s, renew_s = opts.get_typed(validity), opts.get_typed(renewal)
        if renew_s * 10 > validity_s:
            allowed = f"from 1 to {validity_s // 10}, a tenth of {validity.key}={validity_s}"
            raise InvalidOptionError(renewal.key, renew_s, allowed)
        return cls(storage, validity_s=validity_s, renew_s=renew_s, retry_policy=retry_policy)

    @property
    def held(self) -> bool:
        lease = self._lease
        return lease is not None and self._clock() < lease.valid_until - CLOCK_DRIFT_MS

    def ensure_held(self) -> None:
        """Raise ``LockError`` if the lease was lost. A lease that ends soon, because it could not be renewed or this
        process was suspended, is renewed first: the protected request may be sent several times."""
        lease = self._lease
        if self.held and lease is not None and lease.valid_until - self._clock() < self._validity_ms / 2:
            try:
                self.renew()
            except StorageError as error:
                raise LockError(
                    f"{self.describe()} could not be renewed ({error}) and ends soon, so nothing may be committed; "
                    "write again when the storage responds"
                ) from error
        super().ensure_held()

    def describe(self) -> str:
        where = f"lock object {self._storage.uri(LOCK_PATH)!r}"
        try:
            current = self._read()
        except (StorageError, LockError) as error:
            return f"{where} (unreadable, {error})"
        if not current:
            return f"{where} (absent)"
        until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(current[0].valid_until / 1000))
        return f"{where} (valid until {until} unless renewed; content: {current[0].encode().decode()})"

    @property
    def cure(self) -> str:
        return "wait for its owner; if that no longer runs, the lease expires"

    def _read(self) -> tuple[Lease, str] | None:
        """Return the lease and a version that is not newer: if it changes in between, a put on the version fails."""
        stat = self._storage.stat(LOCK_PATH)
        if stat is None:
            return None
        try:
            return Lease.decode(self._storage.read(LOCK_PATH), self._storage.uri(LOCK_PATH)), stat.version
        except NotFoundError:
            return None

    def try_acquire(self) -> bool:
        with self._guard:
            if self._lease is not None:
                return False
            current = self._read()
            if current and not self._is_free(current[0]):
                return False
            if not self._put_lease(current[1] if current else None, expired=False):
                return False
            self._ended.clear()
            self._start_renewal()
            self._begin_audit()
        if not self.held:  # The put took longer than the lease.
            self.release()
        return self.held

    def _begin_audit(self) -> None:
        """Record that the lease begins, if it is to be audited. A writer, which has a lock of its own for each write,
        reads the switch once."""
        self._audit = None
        if self._is_audited is None:
            self._is_audited = is_audit_enabled(self._storage)
        if self._lease is not None and self._is_audited:
            self._audit = LockAudit(self._storage, self._owner, self._lease.valid_until - self._validity_ms)
            self._audit.record(AuditState.START, self._audit.started, self._lease.valid_until, held=True)

    def _record(self, state: AuditState) -> None:
        """Record what has happened to the lease, if it is audited."""
        if self._audit is None or self._lease is None:
            return
        # Another writer may hold the lock as soon as its release is stored, so the lease ends before that.
        now = self._lease.valid_until if state is AuditState.END else self._clock()
        self._audit.record(state, now, self._lease.valid_until, held=not self._lease.expired)

    def _start_renewal(self) -> None:
        thread = threading.Thread(target=self._renew_until_released, name="pyhudi-lock-renewal", daemon=True)
        thread.start()
        self._thread = thread  # A thread that cannot be started cannot be joined.

    def _is_free(self, lease: Lease) -> bool:
        if lease.expired or lease.valid_until + CLOCK_DRIFT_MS <= self._clock():
            return True
        if lease.owner == self._owner:  # Created by a failed attempt of this owner.
            return True
        dead = dead_holder(lease.owner)
        if dead:
            _log.warning("taking over the lease of a dead writer: %s", self.describe())
        return dead

    def _put_lease(self, version: str | None, *, expired: bool) -> bool:
        """Put the lease over a version. Return True if it is stored.

        A put may report either error although it took effect (a repeated request, or a lost response), so the object is
        read again. An earlier put of this owner that was not answered may have taken effect meanwhile: its version is
        replaced.
        """
        lease = Lease(expired, self._clock() + (0 if expired else self._validity_ms), self._owner)
        try:
            self._version = self._replace(lease, version)
        except PreconditionFailedError:
            current = self._read()
            if current is None or current[0].owner != self._owner or current[0].expired:
                return False
            try:
                self._version = self._replace(lease, current[1])
            except PreconditionFailedError:
                return False
        self._lease = lease
        return True

    def _replace(self, lease: Lease, version: str | None) -> str:
        """Put a lease over a version. Return the version of the object, which has the lease.

        Raises:
            PreconditionFailedError: The object has another version and another lease.
            StorageError: It is not known whether the put took effect.
        """
        try:
            return self._storage.replace(LOCK_PATH, lease.encode(), version)
        except StorageError:
            current = self._read()
            if current is None or current[0] != lease:
                raise
            return current[1]

    def _renew_until_released(self) -> None:
        while not self._ended.wait(self._renew_s):
            try:
                if not self.renew():
                    return
            except Exception as error:
                _log.warning("could not renew the lease of %s: %s", self._storage.uri(LOCK_PATH), error)
            except BaseException:  # Simulated crash in a test.
                return

    def renew(self) -> bool:
        """Renew the lease. Return False if it is held by another owner."""
        with self._guard:
            if self._lease is None:
                return False
            if not self._put_lease(self._version, expired=False):
                self._lease = None
                _log.warning("lost: %s", self.describe())
                return False
            self._record(AuditState.RENEW)
            return True

    def release(self) -> None:
        self._ended.set()
        with self._guard:
            if self._lease is not None:
                try:
                    if self._put_lease(self._version, expired=True):
                        self._record(AuditState.END)
                    else:
                        _log.warning("lost before it was released: %s", self.describe())
                except StorageError as error:  # The protected work is done; the lease expires.
                    _log.warning("could not release the lease of %s: %s", self._storage.uri(LOCK_PATH), error)
                finally:
                    self._lease = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None
