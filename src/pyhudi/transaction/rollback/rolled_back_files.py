"""Files of a rollback, as recorded in its metadata and in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.format.file_names import file_name_of
from pyhudi.metadata.writer.rollback.table_rollback import TableRollback
from pyhudi.storage import Storage, join_path
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.plans.rollback_plan import RollbackPlan, RolledBackPartition
from pyhudi.transaction.rollback.late_data_files import MAY_HAVE_SEVERAL_ATTEMPTS


def metadata_rollback(
    storage: Storage, plan: RollbackPlan, rollback: Instant, commands: Mapping[str, Mapping[str, int]]
) -> TableRollback:
    """Return the rollback of the changes to the metadata table, which gets the command blocks instead, and continues
    to list the log files whose blocks they roll back."""
    files = _kept_log_files(storage, plan)
    for partition, paths in commands.items():
        files.setdefault(partition, {}).update({file_name_of(path): size for path, size in paths.items()})
    retried = plan.action in MAY_HAVE_SEVERAL_ATTEMPTS
    return TableRollback(plan.instant, rollback.requested, files, retried=retried)


def _kept_log_files(storage: Storage, plan: RollbackPlan) -> dict[str, dict[str, int]]:
    """Return the sizes of the log files with blocks that a plan rolls back, by partition. The write may have died
    before it made some of those that the plan names, or before their first block: Apache Hudi cannot read a metadata
    table that lists a file of 0 bytes."""
    named = [(r.partition, file_name_of(path)) for r in plan.requests for path in r.log_blocks]
    stats = concurrent_map(lambda log: storage.stat(join_path(*log)), named)
    kept: dict[str, dict[str, int]] = {}
    for (partition, name), stat in zip(named, stats, strict=True):
        if stat is not None and stat.size:
            kept.setdefault(partition, {})[name] = stat.size
    return kept


def rolled_back_partitions(
    storage: Storage, plan: RollbackPlan, deleted: Mapping[str, list[str]], commands: Mapping[str, Mapping[str, int]]
) -> dict[str, RolledBackPartition]:
    """Return the files of a rollback by partition, as its metadata lists them.

    Args:
        storage: Storage of the table.
        plan: Plan of the rollback.
        deleted: Paths of the deleted files by partition.
        commands: Paths of the log files with command blocks, and their sizes, by partition.
    """
    voided: dict[str, dict[str, int]] = {}
    for request in plan.requests:
        names = {file_name_of(name): size for name, size in request.log_blocks.items()}
        voided.setdefault(request.partition, {}).update(names)
    uri = storage.uri
    return {
        partition: RolledBackPartition(
            deleted=tuple(uri(file) for file in deleted.get(partition, ())),
            command_files={uri(path): size for path, size in commands.get(partition, {}).items()},
            log_files=log_files,
        )
        for partition, log_files in voided.items()
    }
