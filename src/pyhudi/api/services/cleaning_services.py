"""Cleaning and archival of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, overload

from pyhudi.api.services.service_base import ServiceBase, file_stats_reader
from pyhudi.metrics.progress import Progress
from pyhudi.services.archival.archival_plan import ArchivalPlan
from pyhudi.services.archival.archival_runner import archive_table, plan_archival
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.service_result import ServiceResult
from pyhudi.timeline.plans.clean_plan import CleanPlan


class CleaningServices(ServiceBase):
    """Cleaning and archival of one table."""

    @overload
    def clean(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult: ...

    @overload
    def clean(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> CleanPlan: ...

    def clean(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult | CleanPlan:
        """Delete the files that no query needs according to the cleaning policy (`hoodie.clean.policy`).

        Pending cleans, of any process, are executed first. Files of savepoints, of pending compactions and clusterings,
        and of the latest snapshot are retained.

        Args:
            options: Options of cleaning, in addition to the table's.
            dry_run: Change nothing, and return the plan that would be made.
            only_if_due: Do nothing before the trigger (`hoodie.clean.trigger.max.commits`) is due.
            progress: Called with "delete files", the number of deleted files, and their total number.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            TransactionError: A restore is pending, or a pending plan contains files that the table still needs.
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        cleaner = Cleaner(client, opts, file_stats_reader(None), progress)
        return cleaner.plan(only_if_due=only_if_due) if dry_run else cleaner.run(only_if_due=only_if_due)

    @overload
    def archive(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult: ...

    @overload
    def archive(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ArchivalPlan: ...

    def archive(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        progress: Progress | None = None,
    ) -> ServiceResult | ArchivalPlan:
        """Move old instants from the active timeline to the archived timeline, which queries and `HudiTable.history`
        read.

        `hoodie.keep.min.commits` commits stay active, and more if cleaning, savepoints, pending instants or the
        metadata table need them.

        Args:
            options: Options of archival, in addition to the table's.
            dry_run: Change nothing, and return the plan that would be made.
            only_if_due: Do nothing unless there are more than `hoodie.keep.max.commits` commits.
            progress: Called with "archive instants" and their number, before and after.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: `hoodie.keep.max.commits` is not greater than `hoodie.keep.min.commits`, and cleaning
                retains commits.
            TransactionError: A restore is pending.
            CorruptInstantError: The active or the archived timeline cannot be read.
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        if dry_run:
            return plan_archival(client, opts, only_if_due=only_if_due)
        return archive_table(client, opts, file_stats_reader(None), only_if_due=only_if_due, progress=progress)
