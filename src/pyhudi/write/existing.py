"""What a write has to learn from the files that a table has, because its properties do not say it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import UnsupportedTableError
from pyhudi.format.filenames import parse_names, split_paths
from pyhudi.index.bucketids import bucket_numbers
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.table.bucketed import bucket_evidence
from pyhudi.table.fsview import FileSystemView
from pyhudi.timeline.instants import Action
from pyhudi.write.basereader import open_base, read_footer
from pyhudi.write.groups import group_keys

if TYPE_CHECKING:
    from pyhudi.index.bucketing import Bucketing
    from pyhudi.storage import Storage
    from pyhudi.table.metaclient import TableMetaClient
    from pyhudi.timeline.active import ActiveTimeline

_READ_THREADS = 8
_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])


def check_buckets(storage: Storage, bucketing: Bucketing, slices: pa.Table, *, keys: bool) -> None:
    """Look whether file slices (SLICE_SCHEMA) of a table with the bucket index can be of these settings: at the numbers
    of all buckets and, if base files hold ``keys``, at one of them.

    Raises:
        ConfigError: they are not.
    """
    bucketing.check_numbers(bucket_numbers(slices["file_id"]), slices["partition"])
    with_base = slices.filter(pc.is_valid(slices["base_path"])).slice(0, 1)
    if with_base.num_rows and keys:
        key = read_footer(storage, with_base["base_path"][0].as_py()).min_key
        if key is not None:
            bucketing.check_key(key, bucket_numbers(with_base["file_id"])[0].as_py(), with_base["partition"][0].as_py())


def check_not_bucketed(client: TableMetaClient) -> None:
    """Refuse a table that was written with the bucket index, whatever index the options name now.

    Raises:
        UnsupportedTableError: says what shows it.
    """
    evidence = bucket_evidence(client)
    if evidence is not None:
        raise UnsupportedTableError(
            f"table {client.config.name!r} was written with the bucket index ({evidence}), in which a file's name says "
            "which keys it holds. Records written without it would not be found again: set hoodie.index.type=BUCKET, "
            "and hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field as they were when it was made"
        )


def holds_keys_in_logs(active: ActiveTimeline, slices: pa.Table) -> bool:
    """Whether log files of these slices (SLICE_SCHEMA) hold keys that are in no base file.

    They do where records were written with an index that finds keys in log files, as by Flink and with the in-memory
    index: then a slice has no base file, or commit metadata say that log files got new records. And they may where a
    write went on beside the compaction that made the base file: what the file before it had, and a delete in the logs
    has taken out of the new one, such a write still took for an update.
    """
    if slices["base_path"].null_count:
        return True
    lists = slices["log_paths"].combine_chunks()
    _, names = split_paths(lists.flatten())
    logs = parse_names(names)["instant"].combine_chunks()
    instants = set(pc.unique(logs).to_pylist())
    by_write = active.layout.version >= 2
    if by_write:
        bases = slices["base_instant"].combine_chunks().dictionary_encode()
        made = pa.array([active.timeline.completion_of(i) for i in bases.dictionary.to_pylist()], pa.string())
        earlier = pc.less(logs, made.take(bases.indices).take(pc.list_parent_indices(lists)))
        if pc.any(earlier).as_py():
            return True
    oldest = min(instants, default="")
    wrote = [
        instant
        for instant in active.timeline.completed().of_actions(Action.DELTA_COMMIT)
        if (instant.requested in instants if by_write else instant.requested >= oldest)
    ]
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        return any(
            _inserts_in_logs(metadata.stats)
            or (not by_write and metadata.operation != "LOG_COMPACT" and _of_an_earlier_base(metadata.stats, slices))
            for metadata in pool.map(active.commit_metadata, wrote)
        )


def _inserts_in_logs(stats: pa.Table) -> bool:
    logged = pc.and_kleene(pc.is_valid(stats["logFiles"]), pc.greater(stats["numInserts"], 0))
    return bool(pc.any(logged).as_py())


def _of_an_earlier_base(stats: pa.Table, slices: pa.Table) -> bool:
    """Whether a write of a version 6 table added to log files of these slices while their base files were being made:
    it names other base files."""
    groups = stats.select(["partitionPath", "fileId"]).rename_columns(["partition", "file_id"])
    at = pc.index_in(group_keys(groups), value_set=group_keys(slices))
    current = split_paths(slices["base_path"])[1].take(at)
    mine = pc.and_(pc.is_valid(stats["logFiles"]), pc.equal(stats["prevCommit"], slices["base_instant"].take(at)))
    other = pc.not_equal(pc.fill_null(stats["baseFile"], ""), current)
    return bool(pc.any(pc.and_kleene(mine, other)).as_py())


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
