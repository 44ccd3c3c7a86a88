"""Checkpoints of streaming queries in the commits of a table.

A commit of a streaming query names its batch in its extra metadata, as Apache Hudi's sink does:
`CHECKPOINT_KEY` has the JSON object ``{identifier: batch number}``. The commit and this entry are one file, so the
table contains a batch if and only if it has its number. In addition, `QUERY_KEY` has ``{identifier: id of the query}``;
a query stores its id in its checkpoint location, so a new query that reuses an identifier is detected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import TableType
from pyhudi.config.options import STREAMING_CHECKPOINT_IDENTIFIER, STREAMING_IGNORE_FAILED_BATCH
from pyhudi.errors import CheckpointError, HudiError, NotAHudiTableError
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS, Instant, State
from pyhudi.timeline.timeline_layout import Layout

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
QUERY_KEY = "_pyhudi_streaming_query"
IDENTIFIER = STREAMING_CHECKPOINT_IDENTIFIER.key
IGNORE_FAILED_BATCH = STREAMING_IGNORE_FAILED_BATCH.key

_METADATA = "metadata"
_AT_ONCE = 100
"""Archived commits that are read at once."""


@dataclass(frozen=True, slots=True)
class SinkCheckpoint:
    """The last micro-batch of an identifier. ``query`` is None if Apache Hudi has written it."""

    identifier: str
    batch: int
    query: str | None = None

    def metadata(self) -> dict[str, str]:
        """Return the extra metadata of the commit of the batch."""
        extra = {CHECKPOINT_KEY: _json({self.identifier: str(self.batch)})}
        if self.query is not None:
            extra[QUERY_KEY] = _json({self.identifier: self.query})
        return extra

    @classmethod
    def from_commit(cls, extra: Mapping[str, str], identifier: str) -> SinkCheckpoint | None:
        """Return the checkpoint of an identifier in a commit; None if there is none.

        Raises:
            CheckpointError: The entry is malformed.
        """
        batch = _value_of_query(extra.get(CHECKPOINT_KEY), identifier)
        if batch is None:
            return None
        if not batch.isdigit():
            raise CheckpointError(f"{CHECKPOINT_KEY} of a commit has the batch {batch!r}, which is not a number")
        return cls(identifier, int(batch), _value_of_query(extra.get(QUERY_KEY), identifier))

    def covers(self, other: SinkCheckpoint) -> bool:
        """Return True if the table contains the batch.

        Raises:
            CheckpointError: Another query writes with this identifier.
        """
        if self.query is not None and other.query is not None and self.query != other.query:
            raise CheckpointError(
                f"the table has batches up to {self.batch} of another streaming query with the identifier "
                f"{self.identifier!r} (query id {self.query}; the id of this query is {other.query}): this "
                "checkpoint location belongs to another query. Start with the checkpoint location of that query "
                f"to continue it, or set {IDENTIFIER} to a different name to write a second stream to the table"
            )
        return self.batch >= other.batch


@dataclass(frozen=True, slots=True)
class SinkHistory:
    """Commits of one checkpoint identifier in a table.

    Attributes:
        last: Checkpoint of the newest commit, archived ones included, that has the identifier; None if there is none.
        commits: Requested times of the commits of the active timeline at that time.
        table_type: Type of the table; None: there is no table yet.
    """

    last: SinkCheckpoint | None = None
    commits: frozenset[str] = frozenset()
    table_type: TableType | None = None

    @classmethod
    def load(cls, storage: Storage, identifier: str) -> SinkHistory:
        """Look for the identifier in a table, which may not exist.

        Raises:
            CheckpointError: The entry of the commit is malformed.
        """
        try:
            client = TableMetaClient.open(storage)
        except NotAHudiTableError:
            return cls()
        active = client.active_timeline()
        commits = frozenset(instant.requested for instant in active.timeline.writes().completed())
        checkpoints = (SinkCheckpoint.from_commit(extra, identifier) for extra in _newest_first(active))
        last = next((checkpoint for checkpoint in checkpoints if checkpoint is not None), None)
        return cls(last, commits, client.config.table_type)

    def later_commit(self, this: SinkCheckpoint, active: ActiveTimeline) -> Instant | None:
        """Return a commit since then that contains a batch; None if there is none. It may have been archived since.

        Raises:
            CheckpointError: It is of another query with this identifier.
        """
        for instant, extra in self._later(active):
            checkpoint = SinkCheckpoint.from_commit(extra, this.identifier)
            if checkpoint is not None and checkpoint.covers(this):
                return instant
        return None

    def _later(self, active: ActiveTimeline) -> Iterator[tuple[Instant, Mapping[str, str]]]:
        """Yield the commits since then, with their extra metadata."""
        completed = active.timeline.writes().completed()
        for instant in completed:
            if instant.requested not in self.commits:
                yield instant, active.commit_metadata(instant).extra
        present = {instant.requested for instant in completed}
        if self.commits and self.commits <= present:
            return  # nothing has been archived since
        since = min(self.commits, default=None)
        archived = read_archived_timeline(active.storage, active.layout, after=since, actions=WRITE_ACTIONS)
        known = pa.array(sorted(self.commits | present), pa.string())
        for row in archived.filter(pc.invert(pc.is_in(archived["requested"], value_set=known))).to_pylist():
            if row["metadata"] is not None:
                instant = Instant(row["requested"], row["action"], State.COMPLETED, row["completion"], "")
                yield instant, decode_commit(row["metadata"]).extra


def check_continuity(last: SinkCheckpoint | None, this: SinkCheckpoint) -> None:
    """Reject a batch if the table does not contain those before it.

    Args:
        last: Last batch of the table.
        this: Batch to write.

    Raises:
        CheckpointError: The checkpoint location belongs to a stream into another table, or commits of the stream have
            been rolled back.
    """
    if last is None and this.batch > 0:
        raise CheckpointError(
            f"the stream continues with batch {this.batch}, but no commit of the table has a batch with the "
            f"identifier {this.identifier!r}: the checkpoint location belongs to a stream into another table, or "
            f"with another identifier. Start with a new checkpoint location, or set {IDENTIFIER} to the "
            "identifier of the earlier batches"
        )
    if last is not None and this.batch > last.batch + 1:
        missing = f"{last.batch + 1}" if this.batch == last.batch + 2 else f"{last.batch + 1} to {this.batch - 1}"
        raise CheckpointError(
            f"the stream continues with batch {this.batch}, but the last batch of {this.identifier!r} in the table is "
            f"{last.batch}: the rows of batch {missing} are missing, for example after a rollback or restore. To write "
            f"them, start with a new checkpoint location and a new {IDENTIFIER} from the input of batch "
            f"{last.batch + 1}; to continue without them, set {IGNORE_FAILED_BATCH} to true for one batch"
        )


def _newest_first(active: ActiveTimeline) -> Iterator[Mapping[str, str]]:
    """Yield the extra metadata of the commits of a table, newest first, read lazily."""
    for instant in reversed(active.timeline.writes().completed().by_completion()):
        yield active.commit_metadata(instant).extra
    for data in _archived_newest_first(active.storage, active.layout):
        yield decode_commit(data).extra


def _archived_newest_first(storage: Storage, layout: Layout) -> Iterator[bytes]:
    """Yield the content of archived commits, newest first, and read them in this order where the layout allows it."""
    lazy = layout.version >= 2
    archived = read_archived_timeline(storage, layout, actions=WRITE_ACTIONS, metadata=not lazy)
    for end in range(archived.num_rows, 0, -_AT_ONCE):
        some = archived.slice(max(0, end - _AT_ONCE), min(_AT_ONCE, end))
        if lazy:
            older = archived["requested"][end - _AT_ONCE - 1].as_py() if end > _AT_ONCE else None
            last = some["requested"][-1].as_py()
            some = read_archived_timeline(storage, layout, after=older, up_to=last, actions=WRITE_ACTIONS)
        yield from (data for data in reversed(some["metadata"].to_pylist()) if data is not None)


def _value_of_query(text: str | None, identifier: str) -> str | None:
    if not text:
        return None
    try:
        parsed = json.loads(text)
        value = parsed.get(identifier)
    except (ValueError, AttributeError) as error:
        raise CheckpointError(f"the checkpoint {text!r} of a commit is not a JSON object: {error}") from error
    return None if value is None else str(value)


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def query_id(checkpoint: Storage) -> str:
    """Return the id of the query that a checkpoint location belongs to: Spark's file ``metadata``, one JSON object.

    Raises:
        CheckpointError: The file cannot be read.
    """
    try:
        return str(json.loads(checkpoint.read(_METADATA))["id"])
    except (HudiError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"the id of the query cannot be read from {checkpoint.uri(_METADATA)!r} ({error}); the checkpoint location "
            "must be a folder that the workers of the server can read"
        ) from error
