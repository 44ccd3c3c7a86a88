"""Properties of a table that a write determines from its files, because hoodie.properties lacks them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.errors import UnsupportedTableError
from pyhudi.format.file_names import file_names_of, parse_names
from pyhudi.index.bucket_ids import bucket_numbers
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.archive.archived_timeline import archived_completions, read_history
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import LOG_COMPACT
from pyhudi.write.rows.base_file_batches import open_base, read_footer

if TYPE_CHECKING:
    from pyhudi.index.bucket_index import Bucketing
    from pyhudi.storage import Storage
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.active_timeline import ActiveTimeline

_READ_THREADS = 16
_FILES_ASKED = 16
_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])


def check_buckets(storage: Storage, bucketing: Bucketing, slices: pa.Table, *, keys: bool) -> None:
    """Check that file slices (SLICE_SCHEMA) of a table with the bucket index match these settings: all bucket numbers
    and, if base files store ``keys``, some of those.

    With twice as many buckets every second key would still be in its bucket, so a few keys may match by chance: the
    first and last keys of up to 16 files are checked, and, if these are fewer than 32, some keys inside a file as well.

    Raises:
        ConfigError: They do not match.
    """
    numbers = bucket_numbers(slices["file_id"])
    bucketing.check_numbers(numbers, slices["partition"])
    with_base = slices.select(["partition", "base_path"]).append_column("number", numbers)
    with_base = with_base.filter(pc.is_valid(with_base["base_path"]))
    if not with_base.num_rows or not keys:
        return
    step = -(-with_base.num_rows // _FILES_ASKED)
    samples = with_base.take(pa.array(range(0, with_base.num_rows, step))).to_pylist()
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        footers = pool.map(lambda row: read_footer(storage, row["base_path"]), samples)
        footer_keys = [{key for key in (footer.min_key, footer.max_key) if key is not None} for footer in footers]
        missing = 2 * _FILES_ASKED - sum(map(len, footer_keys))
        few = -(-missing // len(samples))
        if few > 0:
            more = pool.map(lambda row: first_keys(storage, row["base_path"], few), samples)
            footer_keys = [ends.union(some) for ends, some in zip(footer_keys, more, strict=True)]
    for row, some in zip(samples, footer_keys, strict=True):
        for key in sorted(some):
            bucketing.check_key(key, row["number"], row["partition"])


def check_not_bucketed(client: TableMetaClient) -> None:
    """Refuse a table that was written with the bucket index, regardless of the index in the options.

    Raises:
        UnsupportedTableError: The message has the evidence.
    """
    evidence = bucket_evidence(client)
    if evidence is not None:
        raise UnsupportedTableError(
            f"table {client.config.name!r} was written with the bucket index ({evidence}), in which the name of a "
            "file determines its keys. Records written without it would not be found: set "
            "hoodie.index.type=BUCKET, and hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field to "
            "the values with which the table was created"
        )


@dataclass(frozen=True, slots=True)
class LogContents:
    """Contents of log files that a lookup in base files alone would miss.

    ``new_keys``: they may contain keys that are in no base file. This is the case if records were written with an index
    that finds keys in log files, as by Flink and with the in-memory index: then a slice has no base file, or commit
    metadata record inserts into log files. It is also the case if a write ran concurrently with the compaction that
    created the base file: if a delete in the logs removed a record of the previous file, such a write may have written
    it as an update. ``deletes``: they may have deleted keys of base files.
    """

    new_keys: bool = False
    deletes: bool = False

    @classmethod
    def of(cls, active: ActiveTimeline, slices: pa.Table) -> LogContents:
        """Return the contents of the log files of slices (SLICE_SCHEMA) according to commit metadata, including
        archived commits."""
        lists = slices["log_paths"].combine_chunks()
        names = file_names_of(lists.flatten())
        logs = parse_names(names)["instant"].combine_chunks()
        instants = frozenset(pc.unique(logs).to_pylist())
        if not instants:
            return cls()
        by_write = active.layout.version >= 2
        new_keys = bool(slices["base_path"].null_count)
        if by_write and not new_keys:
            earlier = pc.less(logs, _completions(active, slices["base_instant"]).take(pc.list_parent_indices(lists)))
            new_keys = bool(pc.any(earlier).as_py())
        deletes = False
        for metadata in _written_by(active, instants, by_write=by_write):
            if metadata is None:
                return cls(True, True)
            stats = metadata.stats.filter(pc.is_valid(metadata.stats["logFiles"]))
            deletes = deletes or _any_above_zero(stats["numDeletes"])
            new_keys = new_keys or _any_above_zero(stats["numInserts"])
            if not by_write and metadata.operation != LOG_COMPACT:
                new_keys = new_keys or _of_an_earlier_base(stats, slices)
        return cls(new_keys, deletes)


def _completions(active: ActiveTimeline, instants: pa.ChunkedArray) -> pa.Array:
    """Return completion times of instants; null if unknown."""
    encoded = instants.combine_chunks().dictionary_encode()
    texts: list[str] = encoded.dictionary.to_pylist()
    archived = archived_completions(
        active.storage, active.layout, [i for i in texts if active.timeline.is_before_start(i)]
    )
    done = [active.timeline.completion_of(i) or archived.get(i) for i in texts]
    return pa.array(done, pa.string()).take(encoded.indices)


def _written_by(
    active: ActiveTimeline, instants: Collection[str], *, by_write: bool
) -> Iterator[CommitMetadata | None]:
    """Return the metadata of the delta commits that may have written log files with these instants: those of the
    writes, or (not ``by_write``) of their slices, which includes all later writes. None for unknown instants."""
    oldest = min(instants)
    wrote = [
        instant
        for instant in active.timeline.completed().of_actions(Action.DELTA_COMMIT)
        if (instant.requested in instants if by_write else instant.requested >= oldest)
    ]
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        yield from pool.map(active.commit_metadata, wrote)
    known = {instant.requested for instant in wrote}
    unknown = set(instants) - known if by_write else set()
    if not unknown and (by_write or not active.timeline.is_before_start(oldest)):
        return
    archived = read_history(active.storage, active.layout, after=oldest[:-1])
    archived = archived.filter(pc.equal(archived["action"], Action.DELTA_COMMIT))
    for requested, data in zip(archived["requested"].to_pylist(), archived["metadata"].to_pylist(), strict=True):
        if data is not None and requested not in known and (requested in unknown or not by_write):
            unknown.discard(requested)
            yield decode_commit(data)
    if unknown:
        yield None


def _any_above_zero(counts: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.greater(counts, 0)).as_py())


def _of_an_earlier_base(stats: pa.Table, slices: pa.Table) -> bool:
    """Return True if a write to a version 6 table (the stats of its log files) added to these slices while their base
    files were being created: it records other base files."""
    groups = stats.select(["partitionPath", "fileId"]).rename_columns(["partition", "file_id"])
    at = pc.index_in(group_keys(groups), value_set=group_keys(slices))
    current = file_names_of(slices["base_path"]).take(at)
    mine = pc.equal(stats["prevCommit"], slices["base_instant"].take(at))
    other = pc.not_equal(pc.fill_null(stats["baseFile"], ""), current)
    return bool(pc.any(pc.and_kleene(mine, other)).as_py())


def row_counts(storage: Storage, paths: pa.ChunkedArray) -> list[int]:
    """Return the numbers of rows of base files, from their footers."""
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        return list(pool.map(lambda path: read_footer(storage, path).num_rows, paths.to_pylist()))


def sample_keys(client: TableMetaClient) -> tuple[str, ...]:
    """Return some record keys of the table; none if it is empty or its files store no keys."""
    if not client.config.populate_meta_fields:
        return ()
    for path in FileSystemView.load(client).latest_base_files()["path"].to_pylist():
        footer = read_footer(client.storage, path)
        if footer.min_key is not None and footer.max_key is not None:
            return (footer.min_key, footer.max_key)
        if not footer.num_rows:
            continue
        keys = first_keys(client.storage, path)
        if keys:
            return (keys[0], keys[-1])
    return ()


def first_keys(storage: Storage, path: str, count: int | None = None) -> list[str]:
    """Return the first record keys of a base file, at most ``count``, without invalid UTF-8; none if there are no
    others."""
    with open_base(storage, path, InvalidText.REPLACE) as base:
        for batch in base.batches(_KEY_SCHEMA):
            keys = batch.column(RECORD_KEY)
            valid: list[str] = keys.filter(pc.invert(pc.match_substring(keys, "\ufffd"))).slice(0, count).to_pylist()
            if valid:
                return valid
    return []
