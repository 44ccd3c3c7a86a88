"""What a write has to learn from the files that a table has, because its properties do not say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import UnsupportedTableError
from pyhudi.format.filenames import parse_names, split_paths
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.table.bucketed import bucket_evidence
from pyhudi.table.fsview import FileSystemView
from pyhudi.timeline.instants import Action
from pyhudi.write.basereader import open_base, read_footer

if TYPE_CHECKING:
    from pyhudi.table.metaclient import TableMetaClient
    from pyhudi.timeline.active import ActiveTimeline

_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])


def check_not_bucketed(client: TableMetaClient) -> None:
    """Refuse a table that was written with the bucket index, whatever index the options name now.

    Raises:
        UnsupportedTableError: says what shows it.
    """
    evidence = bucket_evidence(client)
    if evidence is not None:
        raise UnsupportedTableError(
            f"table {client.config.name!r} was written with the bucket index ({evidence}), in which a file's name says "
            "which keys it holds. That is not supported yet, and records written without it would not be found again"
        )


def check_base_holds_keys(active: ActiveTimeline, slices: pa.Table) -> None:
    """Refuse to look keys up in base files when some are in log files alone.

    Such tables are written with an index that finds keys in log files, as those of Flink and the in-memory index are.
    ``slices`` has SLICE_SCHEMA.

    Raises:
        UnsupportedTableError: a slice has no base file, or log files got new records.
    """
    bare = slices.filter(pc.is_null(slices["base_path"]))
    if bare.num_rows:
        raise _keys_in_logs(f"file group {bare['file_id'][0].as_py()!r} has no base file")
    _, names = split_paths(slices["log_paths"].combine_chunks().flatten())
    if not len(names):
        return
    instants = pc.unique(parse_names(names)["instant"])
    by_write = active.layout.version >= 2
    oldest = pc.min(instants).as_py()
    for instant in active.timeline.completed().of_actions(Action.DELTA_COMMIT):
        wrote_logs = instant.requested in instants.to_pylist() if by_write else instant.requested >= oldest
        if wrote_logs and _inserts_in_logs(active.commit_metadata(instant).stats):
            raise _keys_in_logs(f"{instant.action} {instant.requested} wrote new records to log files")


def check_keys_live(slices: pa.Table, why: str) -> None:
    """Refuse to take keys of base files for keys of the table where log files may have deleted or changed them.

    ``slices`` has SLICE_SCHEMA; ``why`` says what needs to know, as the begin of a sentence.

    Raises:
        UnsupportedTableError: there are log files.
    """
    logged = pc.sum(pc.greater(pc.list_value_length(slices["log_paths"]), 0)).as_py() or 0
    if logged:
        raise UnsupportedTableError(
            f"{why} has to know which records the table holds now, and {logged:,} file slices have log files that may "
            "have deleted or changed some; compact the table first"
        )


def _inserts_in_logs(stats: pa.Table) -> bool:
    logged = pc.and_kleene(pc.is_valid(stats["logFiles"]), pc.greater(stats["numInserts"], 0))
    return bool(pc.any(logged).as_py())


def _keys_in_logs(evidence: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"the table has keys that are in log files alone ({evidence}), where the indexes that can be used here do not "
        "find them, so that records would come twice; compact the table first"
    )


def sample_keys(client: TableMetaClient) -> tuple[str, ...]:
    """A few record keys of the table; none if it is empty or its files hold no keys."""
    if not client.config.populate_meta_fields:
        return ()
    for path in FileSystemView.load(client).latest_base_files()["path"].to_pylist():
        footer = read_footer(client.storage, path)
        if footer.min_key is not None and footer.max_key is not None:
            return (footer.min_key, footer.max_key)
        if not footer.num_rows:
            continue
        with open_base(client.storage, path) as base:
            keys = next(base.batches(_KEY_SCHEMA)).column(RECORD_KEY)
            return (keys[0].as_py(), keys[-1].as_py())
    return ()
