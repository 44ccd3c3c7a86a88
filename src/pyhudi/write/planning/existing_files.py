"""Facts that a write has to read from the table's files, because its properties do not state them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.errors import UnsupportedTableError
from pyhudi.format.file_names import parse_names, split_paths
from pyhudi.index.bucket_ids import bucket_numbers
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.archive.archived_timeline import archived_completions, read_history
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import Action
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
    """Check that file slices (SLICE_SCHEMA) of a table with the bucket index fit these settings: the numbers of all
    buckets and, if base files hold ``keys``, some of those.

    With twice as many buckets every second key is still where it was, so a few keys may all agree by chance: the first
    and the last key of up to 16 files are asked, and, where these are fewer than 32, some of a file's own as well.

    Raises:
        ConfigError: they are not.
    """
    numbers = bucket_numbers(slices["file_id"])
    bucketing.check_numbers(numbers, slices["partition"])
    with_base = slices.select(["partition", "base_path"]).append_column("number", numbers)
    with_base = with_base.filter(pc.is_valid(with_base["base_path"]))
    if not with_base.num_rows or not keys:
        return
    step = -(-with_base.num_rows // _FILES_ASKED)
    asked = with_base.take(pa.array(range(0, with_base.num_rows, step))).to_pylist()
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        footers = pool.map(lambda row: read_footer(storage, row["base_path"]), asked)
        found = [{key for key in (footer.min_key, footer.max_key) if key is not None} for footer in footers]
        missing = 2 * _FILES_ASKED - sum(map(len, found))
        few = -(-missing // len(asked))
        if few > 0:
            more = pool.map(lambda row: first_keys(storage, row["base_path"], few), asked)
            found = [ends.union(some) for ends, some in zip(found, more, strict=True)]
    for row, some in zip(asked, found, strict=True):
        for key in sorted(some):
            bucketing.check_key(key, row["number"], row["partition"])


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


@dataclass(frozen=True, slots=True)
class LogContents:
    """Contents of log files that a lookup in base files alone would miss.

    ``new_keys``: they may hold keys that are in no base file. They do where records were written with an index that
    finds keys in log files, as by Flink and with the in-memory index: then a slice has no base file, or commit metadata
    say that log files got new records. And they may where a write went on beside the compaction that made the base
    file: what the file before it had, and a delete in the logs has taken out of the new one, such a write still took
    for an update. ``deletes``: they may have deleted keys of base files.
    """

    new_keys: bool = False
    deletes: bool = False

    @classmethod
    def of(cls, active: ActiveTimeline, slices: pa.Table) -> LogContents:
        """Return the contents of the log files of slices (SLICE_SCHEMA), by the metadata of the writes, archived ones
        too."""
        lists = slices["log_paths"].combine_chunks()
        _, names = split_paths(lists.flatten())
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
            if not by_write and metadata.operation != "LOG_COMPACT":
                new_keys = new_keys or _of_an_earlier_base(stats, slices)
        return cls(new_keys, deletes)


def _completions(active: ActiveTimeline, instants: pa.ChunkedArray) -> pa.Array:
    """Completion times of instants; null where unknown."""
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
    """The metadata of the delta commits that may have written log files whose names bear these instants: those of the
    writes, or (not ``by_write``) of their slices, and so those of any later write. None for what nobody knows of."""
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
    """True if a write of a version 6 table (the stats of its log files) added to these slices while their base files
    were being made: it names other base files."""
    groups = stats.select(["partitionPath", "fileId"]).rename_columns(["partition", "file_id"])
    at = pc.index_in(group_keys(groups), value_set=group_keys(slices))
    current = split_paths(slices["base_path"])[1].take(at)
    mine = pc.equal(stats["prevCommit"], slices["base_instant"].take(at))
    other = pc.not_equal(pc.fill_null(stats["baseFile"], ""), current)
    return bool(pc.any(pc.and_kleene(mine, other)).as_py())


def row_counts(storage: Storage, paths: pa.ChunkedArray) -> list[int]:
    """Return the numbers of rows of base files, by their footers."""
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        return list(pool.map(lambda path: read_footer(storage, path).num_rows, paths.to_pylist()))


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
        keys = first_keys(client.storage, path)
        if keys:
            return (keys[0], keys[-1])
    return ()


def first_keys(storage: Storage, path: str, count: int | None = None) -> list[str]:
    """The first record keys of a base file, at most ``count``, without those that are not UTF-8, which are no samples;
    none if it has no others."""
    with open_base(storage, path, InvalidText.REPLACE) as base:
        for batch in base.batches(_KEY_SCHEMA):
            keys = batch.column(RECORD_KEY)
            found: list[str] = keys.filter(pc.invert(pc.match_substring(keys, "\ufffd"))).slice(0, count).to_pylist()
            if found:
                return found
    return []
