"""Rollback, savepoints and restore of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, overload

from pyhudi.api.services.service_base import ServiceBase, file_stats_reader
from pyhudi.metrics.progress import Progress
from pyhudi.read.inspection.result_table import ResultTable
from pyhudi.services.restore import Restorer
from pyhudi.services.rollback import roll_back
from pyhudi.services.savepoint import create_savepoint, delete_savepoint, list_savepoints
from pyhudi.services.service_result import ServiceResult
from pyhudi.timeline.plans.restore_plan import RestorePlan


class RecoveryServices(ServiceBase):
    """Rollback of writes, savepoints, and restores of one table."""

    def rollback(self, instant: str | None = None, options: Mapping[str, object] | None = None) -> ServiceResult:
        """Roll back a write: a pending one, or the last completed one.

        The plan of a compaction or clustering that has been started remains, to be executed again; a plan that has not
        been started is removed, and so is that of a clustering that a restore has undone.

        Args:
            instant: Requested time of the write; None for the last completed one. A rollback that died before its end
                is then finished instead, so that a repeated call does not undo a second write.
            options: Options of locks and of the metadata table.

        Returns:
            The result, with the instant of the write, and the numbers of deleted files and their partitions.

        Raises:
            InstantNotFoundError: The active timeline has no such write.
            TransactionError: Later writes depend on it, it has a savepoint, or cleaning has deleted earlier files.
            BusyError: Another process is executing it.
        """
        client, opts = self._open(options)
        return roll_back(client, opts, file_stats_reader(None), instant)

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Mapping[str, object] | None = None,
    ) -> ServiceResult:
        """Retain the files of the snapshot after a completed write, so that the table can be restored to it.

        Args:
            instant: Requested time of the write; None for the last one.
            user: User stored in the savepoint.
            comment: Comment stored in the savepoint.
            options: Options of locks.

        Returns:
            The result, with the instant; without one, and with a ``reason``, if there already is a savepoint.

        Raises:
            InstantNotFoundError: The active timeline has no such completed write.
            TransactionError: Cleaning has deleted files of that snapshot.
        """
        client, opts = self._open(options)
        return create_savepoint(client, opts, instant, user=user, comment=comment)

    def delete_savepoint(self, instant: str, options: Mapping[str, object] | None = None) -> ServiceResult:
        """Delete a savepoint, so that cleaning may delete its files.

        Args:
            instant: Requested time of the savepoint.
            options: Options of locks.

        Returns:
            The result, with the instant of the savepoint.

        Raises:
            InstantNotFoundError: There is no savepoint at that instant.
            TransactionError: Archival has passed the savepoint, and files that its write has replaced still exist.
        """
        client, opts = self._open(options)
        return delete_savepoint(client, opts, instant)

    def savepoints(self) -> ResultTable:
        """Return the savepoints (`pyhudi.services.savepoint.SAVEPOINT_SCHEMA`), oldest first."""
        client, _ = self._open(None)
        return ResultTable(list_savepoints(client))

    @overload
    def restore(
        self,
        to: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        progress: Progress | None = None,
    ) -> ServiceResult: ...

    @overload
    def restore(
        self,
        to: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        progress: Progress | None = None,
    ) -> RestorePlan: ...

    def restore(
        self,
        to: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult | RestorePlan:
        """Restore the table to the snapshot of a completed write, with or without a savepoint; all later writes are
        rolled back. Writers must be stopped.

        An interrupted restore is continued by the same call, or without an instant.

        Args:
            to: Requested time of the write; None to continue an interrupted restore.
            options: Options of locks and of the metadata table.
            dry_run: Change nothing, and return the plan that would be made.
            progress: Called with "undo writes", the number of rolled-back writes, and their total number.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            InstantNotFoundError: The active timeline has no such completed write, or, without ``to``, no restore is
                pending.
            TransactionError: Another restore is pending, cleaning has deleted files of that snapshot, or a later write
                has been archived or has a savepoint.
            BusyError: A write is running.
        """
        client, opts = self._open(options)
        restorer = Restorer(client, opts, file_stats_reader(None), progress)
        return restorer.plan(to) if dry_run else restorer.run(to)
