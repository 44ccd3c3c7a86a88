"""Audit of the storage-based lock, and markers, of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.api.services.service_base import ServiceBase
from pyhudi.errors import ConfigError, TransactionError
from pyhudi.storage.clock import now_ms
from pyhudi.timeline.markers import Markers
from pyhudi.transaction.locks.lock_audit import (
    AuditReport,
    delete_old_audits,
    is_audit_enabled,
    set_audit_enabled,
    validate_audits,
)

_DAY_MS = 24 * 60 * 60 * 1000


class LockAuditServices(ServiceBase):
    """Audit of the storage-based lock (``StorageBasedLockProvider``) of one table, and deletion of markers."""

    def set_lock_audit(self, options: Mapping[str, object] | None = None, *, enabled: bool) -> None:
        """Turn the audit of the lock on or off. Current holders of the lock keep the setting that they began with.

        Args:
            options: Settings of the storage.
            enabled: Whether each holding of the lock is recorded in a file.
        """
        client, _ = self._open(options)
        set_audit_enabled(client.storage, enabled=enabled)

    def is_lock_audited(self, options: Mapping[str, object] | None = None) -> bool:
        """Return True if the audit of the lock is on.

        Args:
            options: Settings of the storage.
        """
        client, _ = self._open(options)
        return is_audit_enabled(client.storage)

    def validate_lock_audit(self, options: Mapping[str, object] | None = None) -> AuditReport:
        """Check that no two writers have held the lock at the same time, as far as the files of the audit tell.

        Args:
            options: Settings of the storage.

        Returns:
            The number of holdings, errors (holdings that overlap, files that cannot be read) and warnings (holdings
            without an end).
        """
        client, _ = self._open(options)
        return validate_audits(client.storage)

    def delete_lock_audits(
        self, days: int, options: Mapping[str, object] | None = None, *, dry_run: bool = False
    ) -> int:
        """Delete old files of the audit.

        Args:
            days: Age in days from which files are deleted, at least 1.
            options: Settings of the storage.
            dry_run: Delete nothing, and only count the files.

        Returns:
            The number of files.

        Raises:
            ConfigError: ``days`` is less than 1.
        """
        if days < 1:
            raise ConfigError(f"days must be 1 or more, not {days}")
        client, _ = self._open(options)
        return delete_old_audits(client.storage, now_ms() - days * _DAY_MS, dry_run=dry_run)

    def delete_markers(self, instant: str, options: Mapping[str, object] | None = None) -> None:
        """Delete the markers of a write that has completed or was rolled back, if its process died before it could.

        Args:
            instant: Requested time of the write.
            options: Settings of the storage.

        Raises:
            TransactionError: The write is pending, and its rollback needs its markers.
        """
        client, _ = self._open(options)
        pending = client.active_timeline().timeline.pending().find(instant)
        if pending is not None:
            raise TransactionError(f"{pending} is pending, and its rollback needs its markers: roll it back instead")
        Markers(client.storage, instant).delete()
