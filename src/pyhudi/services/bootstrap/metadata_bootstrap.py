"""Metadata-only bootstrap: a skeleton file for each file of the source, and the bootstrap index.

Tasks write the skeleton files; then the index is written, which is not used before the commit. The commit is one file
in the timeline, as for any write. An interrupted bootstrap is rolled back by the next one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config.enums import Operation
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.services.bootstrap.source_listing import source_files
from pyhudi.table.bootstrap_index import METADATA_BOOTSTRAP, BootstrapIndex, SourceFile
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.handles.skeleton_handle import SkeletonHandle
from pyhudi.write.rows.bootstrap_source import SourceReader
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.settings.write_settings import write_context
from pyhudi.write.write_operations import action_of, type_name
from pyhudi.write.write_result import WriteResult, result_of_commit
from pyhudi.write.write_status import decode_stats, encode_stats

Runner = Callable[[SkeletonHandle, pa.Table], pa.Table]
"""Writes the skeleton files of source files (`pyhudi.table.bootstrap_index.SOURCE_SCHEMA`). Returns their write
stats."""


@dataclass(frozen=True, slots=True)
class ThreadSkeletonWriter:
    """Writes skeleton files on threads of this process."""

    threads: int = min(8, (os.cpu_count() or 1) + 2)

    def __call__(self, handle: SkeletonHandle, sources: pa.Table) -> pa.Table:
        def write(number: int) -> bytes:
            (row,) = sources.slice(number, 1).to_pylist()
            return encode_stats([handle.write(SourceFile(**row), TaskId(number, 0, 0))])

        with ThreadPoolExecutor(self.threads) as pool:
            return decode_stats(pool.map(write, range(sources.num_rows)))


def bootstrap_metadata(
    client: TableMetaClient, plan: BootstrapPlan, run: Runner, stats_reader: FileStatsReader
) -> WriteResult:
    """Execute the metadata-only part of a plan as one commit.

    Raises:
        ConflictError: Another writer considered this one dead.
        SchemaMismatchError, RecordKeyError: The rows of a source file do not match the table.
        StorageError: A source file has changed. The bootstrap is rolled back completely.
    """
    index = BootstrapIndex(plan.target.storage)
    sources = source_files(plan.target.storage.root, plan.source, plan.metadata_only)
    action = action_of(Operation.BOOTSTRAP, plan.target.config.table_type)
    name = type_name(Operation.BOOTSTRAP)
    with Transaction.begin(client, action, name, plan.target.opts, stats_reader, instant=METADATA_BOOTSTRAP) as tx:
        tx.to_inflight()
        target = replace(plan.target, config=tx.config)
        context = write_context(target, Operation.BOOTSTRAP, tx.instant, plan.schema)
        reader = SourceReader(
            plan.target.storage, plan.target.config, plan.schema, plan.all_columns, context.invalid_text
        )
        stats = run(SkeletonHandle(context, plan.spec, reader, secrets.randbits(31)), sources)
        index.write(plan.source_path, sources)
        metadata = CommitMetadata(name, stats, {"schema": to_avro(plan.schema, plan.target.config.name)})
        outcome = tx.commit(metadata)
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    return result_of_commit(plan.target.storage.uri(), outcome, metadata)
