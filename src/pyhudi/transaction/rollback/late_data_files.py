"""Files of rolled-back writes that appeared after their rollbacks.

A task may be suspended between its last check of the fence and the creation of its data file. In the meantime its write
is considered dead and rolled back. The task resumes, writes the file, and is killed before it can check again. Readers
ignore such a file while its instant is later than the start of the timeline, or while another attempt at its plan is
pending. So it is deleted before either changes: its marker was created before the fence was closed, so the rollback
plan includes it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import file_name_of
from pyhudi.index.consistent_hashing import delete_metadata, partitions_with_buckets
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.storage.concurrent_reads import read_each
from pyhudi.table.bootstrap_index import BOOTSTRAP_INSTANTS
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.rollback_plan import RollbackPlan, RollbackRequest
from pyhudi.transaction.rollback.rollback_log_blocks import write_rollback_blocks
from pyhudi.transaction.rollback.rollback_planner import planned_paths
from pyhudi.transaction.rollback.rollback_status import read_rollback_plan

_log = logging.getLogger(__name__)
RESIZES = (Action.CLUSTERING, Action.REPLACE_COMMIT)
"""Actions of plans to split and merge the buckets of consistent hashing, besides other ones."""
MAY_HAVE_SEVERAL_ATTEMPTS = (Action.COMPACTION, Action.LOG_COMPACTION, *RESIZES)
"""Actions of which another attempt may have been completed under the same instant; clusterings of version 6 are
replacecommits."""


def delete_files_older_than(active: ActiveTimeline, start: str | None) -> None:
    """Delete late files of rolled-back instants older than ``start``, which is going to be the first write of the
    active timeline; None: of all, before an upgrade to a version that counts every block of a log file. Late blocks in
    log files of version 6 are rolled back by command blocks. The caller holds the lock of the table.
    """
    rollbacks = [one for one in _rollbacks(active) if start is None or one[1].instant < start]
    archived = _archived_later_attempts(active, [plan for _, plan in rollbacks])
    for rollback, plan in rollbacks:
        done = active.timeline.find(plan.instant)
        if plan.instant in archived or (done is not None and not done.is_completed):
            continue
        named = None if done is None else active.commit_metadata(done).named_files()
        _delete(active, plan, named)
        write_rollback_blocks(
            active.storage, _not_rolled_back(active, rollback, plan), rollback.requested, plan.instant
        )


def delete_files_passed_by_start(active: ActiveTimeline, start: str) -> None:
    """Delete the files that would become visible when the active timeline starts at a later write, ``start``. The
    caller holds the lock of the table."""
    delete_files_older_than(active, start)
    _delete_slices_of_resizes(active, start)


def delete_files_of_other_attempts(active: ActiveTimeline, instant: str, named: pa.Array) -> None:
    """Delete late files of earlier attempts at a plan or bootstrap, before the attempt that has written ``named`` is
    published."""
    for _, plan in _rollbacks(active):
        if plan.instant == instant:
            _delete(active, plan, named)


def _delete_slices_of_resizes(active: ActiveTimeline, start: str) -> None:
    """Delete the slices opened for resizes of buckets that were rolled back together with their plans
    (`delete_slices_of_removed_plans`), before the start of the timeline passes them. The caller holds the lock of the
    table."""
    if not partitions_with_buckets(active.storage):
        return
    timeline = active.timeline
    passed = timeline.start or ""
    plans = [
        plan
        for _, plan in _rollbacks(active)
        if plan.action in RESIZES and passed <= plan.instant < start and plan.instant not in timeline
    ]
    delete_slices_of_removed_plans(active, {plan.instant for plan in plans} - _archived_later_attempts(active, plans))


def delete_slices_of_removed_plans(active: ActiveTimeline, instants: Collection[str]) -> None:
    """Delete the file slices of consistent hashing buckets that were opened for plans which are no longer in the
    timeline. The caller holds the lock of the table.

    During a resize of buckets, writers of Apache Hudi write updates to the old buckets and also to the new ones,
    in log files with the instant of the resize. They are copies, which readers ignore only until the start of the
    timeline passes that instant. The metadata table has them, too, and is deleted, to be rebuilt.
    """
    partitions = partitions_with_buckets(active.storage) if instants else []
    if not partitions:
        return
    files, _ = list_files(active.storage, partitions)
    opened = files["path"].filter(pc.is_in(files["instant"], value_set=pa.array(sorted(instants)))).to_pylist()
    if opened:
        _log.warning("deleting %d files of resizes that were rolled back, such as %s", len(opened), opened[0])
        delete_metadata_table(active.storage, TableConfig.load(active.storage))
        active.storage.delete_many(opened)
    delete_metadata(active.storage, instants)


def _rollbacks(active: ActiveTimeline) -> Iterator[tuple[Instant, RollbackPlan]]:
    rollbacks = active.timeline.completed().of_actions(Action.ROLLBACK).instants
    for rollback, plan in read_each(partial(read_rollback_plan, active), rollbacks):
        if plan is not None:
            yield rollback, plan


def _archived_later_attempts(active: ActiveTimeline, plans: list[RollbackPlan]) -> set[str]:
    """Return the instants of rolled-back attempts whose later attempts are completed and archived.

    Late files of these were deleted when they were archived. A file of the plan that exists now may be a live one,
    because file names of Apache Hudi repeat: the numbers of stages and task attempts start again in each application of
    Spark.
    """
    retried = (p.instant for p in plans if p.action in MAY_HAVE_SEVERAL_ATTEMPTS or p.instant in BOOTSTRAP_INSTANTS)
    archived = [instant for instant in retried if active.timeline.find(instant) is None]
    if not archived:
        return set()
    history = read_archived_timeline(active.storage, active.layout, up_to=max(archived), metadata=False)
    return set(archived) & set(history["requested"].to_pylist())


def _delete(active: ActiveTimeline, plan: RollbackPlan, named: pa.Array | None) -> None:
    recorded = frozenset(() if named is None else named.to_pylist())
    active.storage.delete_many(path for paths in planned_paths(plan).values() for path in paths if path not in recorded)


def _not_rolled_back(active: ActiveTimeline, rollback: Instant, plan: RollbackPlan) -> list[RollbackRequest]:
    """Return the requests for which the rollback wrote no command block, because there was no log file then."""
    requests = [request for request in plan.requests if request.log_blocks]
    if not requests:
        return []
    record = decode_record(Action.ROLLBACK, State.COMPLETED, active.read_state(rollback, State.COMPLETED))
    partitions = record["partitionMetadata"].values()
    written = {file_name_of(name) for partition in partitions for name in partition["rollbackLogFiles"] or ()}
    return [
        request
        for request in requests
        if not any(name.startswith(f".{request.file_id}_{request.base_instant}.log.") for name in written)
    ]
