"""Audit of the storage-based lock: a file of JSON lines for each time that a writer holds it.

``.hoodie/.locks/audit_enabled.json`` turns the audit on. A line has ``ownerId``, ``transactionStartTime``,
``timestamp``, ``state``, ``lockExpiration`` (times in epoch milliseconds) and ``lockHeld``. The file is rewritten
for each line, since object stores cannot append. Source: ``StorageLockProviderAuditService`` of Apache Hudi 1.1.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow.compute as pc

from pyhudi.errors import FormatError, NotFoundError, StorageError
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import LOCKS_FOLDER

AUDIT_SWITCH = f"{LOCKS_FOLDER}/audit_enabled.json"
AUDIT_FOLDER = f"{LOCKS_FOLDER}/audit"
_ENABLED = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"
_EXTENSION = ".jsonl"

_log = logging.getLogger(__name__)


class AuditState(StrEnum):
    """Event in the life of a lease."""

    START = "START"
    RENEW = "RENEW"
    END = "END"


@dataclass(slots=True)
class LockAudit:
    """The file of one holding of the lock.

    Attributes:
        storage: Storage of the table.
        owner: Owner of the lock. The name of the file has its first word only, as the rest may contain slashes.
        started: When the lock was acquired, in epoch milliseconds.
    """

    storage: Storage
    owner: str
    started: int
    _lines: list[str] = field(default_factory=list)

    def record(self, state: AuditState, timestamp: int, expiration: int, *, held: bool) -> None:
        """Add a line. An error is logged: the lock does not depend on its audit.

        Args:
            state: What has happened.
            timestamp: When, in epoch milliseconds.
            expiration: End of the lease, in epoch milliseconds.
            held: The owner holds the lock.
        """
        line = {
            "ownerId": self.owner,
            "transactionStartTime": self.started,
            "timestamp": timestamp,
            "state": state.value,
            "lockExpiration": expiration,
            "lockHeld": held,
        }
        self._lines.append(json.dumps(line, separators=(",", ":")) + "\n")
        path = f"{AUDIT_FOLDER}/{self.started}_{self.owner.partition(' ')[0]}{_EXTENSION}"
        try:
            self.storage.write(path, "".join(self._lines).encode())
        except StorageError as error:
            _log.warning("could not write the audit of the lock to %s: %s", self.storage.uri(path), error)


def is_audit_enabled(storage: Storage) -> bool:
    """Return True if the audit of the table's lock is turned on. A file that cannot be read counts as turned off."""
    try:
        switch = json.loads(storage.read(AUDIT_SWITCH))
    except NotFoundError:
        return False
    except (StorageError, ValueError) as error:
        _log.warning("%s cannot be read, so the lock has no audit: %s", storage.uri(AUDIT_SWITCH), error)
        return False
    return isinstance(switch, dict) and switch.get(_ENABLED) is True


def set_audit_enabled(storage: Storage, *, enabled: bool) -> None:
    """Turn the audit of the table's lock on or off. Writes and services that have held the lock keep the setting that
    they began with."""
    storage.write(AUDIT_SWITCH, json.dumps({_ENABLED: enabled}, separators=(",", ":")).encode())


def delete_old_audits(storage: Storage, before_ms: int, *, dry_run: bool) -> int:
    """Delete the files that were written last before a time.

    Args:
        storage: Storage of the table.
        before_ms: The time, in epoch milliseconds.
        dry_run: Only count them.

    Returns:
        The number of files.
    """
    files = storage.list(AUDIT_FOLDER)
    old = files.filter(pc.less(files["mtime_ms"], before_ms))["path"].to_pylist()
    paths = [path for path in old if path.endswith(_EXTENSION)]
    if not dry_run:
        storage.delete_many(paths)
    return len(paths)


@dataclass(frozen=True, slots=True)
class LockHolding:
    """One holding of the lock, as its file records it; times are in epoch milliseconds. ``ended`` is None without a
    record of the end."""

    file_name: str
    started: int
    ended: int | None
    expiration: int

    @property
    def last(self) -> int:
        """The time until which it may have held the lock."""
        return self.expiration if self.ended is None else self.ended

    @classmethod
    def parse(cls, file_name: str, data: bytes) -> LockHolding:
        """Parse a file.

        Raises:
            FormatError: It has no line, or one that is not valid.
        """
        try:
            lines: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines() if line.strip()]
            times = {state: [int(row["timestamp"]) for row in lines if row["state"] == state] for state in AuditState}
            started = (times[AuditState.START] or [int(lines[0]["transactionStartTime"])])[0]
            ends = times[AuditState.END]
            return cls(file_name, started, ends[-1] if ends else None, int(lines[-1]["lockExpiration"]))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise FormatError(f"{file_name} is not a valid audit of a lock: {error!r}") from error


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Result of `validate_audits`.

    Attributes:
        holdings: Number of holdings that were compared.
        errors: Files that cannot be read, and pairs of holdings at the same time.
        warnings: Holdings without an end: their writers died.
    """

    holdings: int
    errors: Sequence[str]
    warnings: Sequence[str]


def validate_audits(storage: Storage) -> AuditReport:
    """Check that no two writers have held the lock at the same time, as far as the files tell."""
    holdings, errors = [], []
    for path in sorted(storage.list(AUDIT_FOLDER)["path"].to_pylist()):
        if path.endswith(_EXTENSION):
            try:
                holdings.append(LockHolding.parse(file_name_of(path), storage.read(path)))
            except NotFoundError:
                continue  # It has been cleaned up meanwhile.
            except FormatError as error:
                errors.append(str(error))
    errors += (f"{one.file_name} overlaps with {other.file_name}" for one, other in _overlaps(holdings))
    unended = [f"{one.file_name} has no end: its writer did not release the lock" for one in holdings if not one.ended]
    return AuditReport(len(holdings), errors, unended)


def _overlaps(holdings: Sequence[LockHolding]) -> Iterator[tuple[LockHolding, LockHolding]]:
    """Return the pairs of holdings of which the second one began before the first one ended."""
    current: list[LockHolding] = []
    for holding in sorted(holdings, key=lambda one: one.started):
        current = [earlier for earlier in current if earlier.last > holding.started]
        yield from ((earlier, holding) for earlier in current)
        current.append(holding)
