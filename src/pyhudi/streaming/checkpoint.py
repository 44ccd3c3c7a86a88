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

from pyhudi.config.options import STREAMING_CHECKPOINT_IDENTIFIER
from pyhudi.errors import CheckpointError, NotAHudiTableError
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.archive.archived_timeline import read_history
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS
from pyhudi.timeline.timeline_layout import Layout

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
QUERY_KEY = "_pyhudi_streaming_query"
IDENTIFIER = STREAMING_CHECKPOINT_IDENTIFIER.key

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
    def of_commit(cls, extra: Mapping[str, str], identifier: str) -> SinkCheckpoint | None:
        """Return the checkpoint of an identifier in a commit; None if there is none.

        Raises:
            CheckpointError: The entry is malformed.
        """
        batch = _named(extra.get(CHECKPOINT_KEY), identifier)
        if batch is None:
            return None
        if not batch.isdigit():
            raise CheckpointError(f"{CHECKPOINT_KEY} of a commit has the batch {batch!r}, which is not a number")
        return cls(identifier, int(batch), _named(extra.get(QUERY_KEY), identifier))

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


def last_checkpoint(storage: Storage, identifier: str) -> SinkCheckpoint | None:
    """Return the checkpoint of the newest commit, archived ones included, that has the identifier; None if there is
    none.

    Raises:
        CheckpointError: The entry of the commit is malformed.
    """
    try:
        client = TableMetaClient.open(storage)
    except NotAHudiTableError:
        return None
    for extra in _newest_first(client):
        checkpoint = SinkCheckpoint.of_commit(extra, identifier)
        if checkpoint is not None:
            return checkpoint
    return None


def check_continuity(last: SinkCheckpoint | None, first: SinkCheckpoint) -> None:
    """Reject a query that continues after batches which the table does not contain.

    Raises:
        CheckpointError: The checkpoint location belongs to a stream into another table.
    """
    if last is None and first.batch > 0:
        raise CheckpointError(
            f"the stream continues with batch {first.batch}, but no commit of the table has a batch with the "
            f"identifier {first.identifier!r}: the checkpoint location belongs to a stream into another table, or "
            f"with another identifier. Start with a new checkpoint location, or set {IDENTIFIER} to the "
            "identifier of the earlier batches"
        )


def _newest_first(client: TableMetaClient) -> Iterator[Mapping[str, str]]:
    """Yield the extra metadata of the commits of a table, newest first, read lazily."""
    active = client.active_timeline()
    for instant in reversed(active.timeline.writes().completed().by_completion()):
        yield active.commit_metadata(instant).extra
    for data in _archived_newest_first(client.storage, active.layout):
        yield decode_commit(data).extra


def _archived_newest_first(storage: Storage, layout: Layout) -> Iterator[bytes]:
    """Yield the content of archived commits, newest first, and read them in this order where the layout allows it."""
    lazy = layout.version >= 2
    writes = pa.array(sorted(WRITE_ACTIONS))
    archived = read_history(storage, layout, metadata=not lazy)
    archived = archived.filter(pc.is_in(archived["action"], value_set=writes))
    for end in range(archived.num_rows, 0, -_AT_ONCE):
        some = archived.slice(max(0, end - _AT_ONCE), min(_AT_ONCE, end))
        if lazy:
            older = archived["requested"][end - _AT_ONCE - 1].as_py() if end > _AT_ONCE else None
            some = read_history(storage, layout, after=older, up_to=some["requested"][-1].as_py())
            some = some.filter(pc.is_in(some["action"], value_set=writes))
        yield from (data for data in reversed(some["metadata"].to_pylist()) if data is not None)


def _named(text: str | None, identifier: str) -> str | None:
    if not text:
        return None
    try:
        parsed = json.loads(text)
        value = parsed.get(identifier)
    except (ValueError, AttributeError) as e:
        raise CheckpointError(f"the checkpoint {text!r} of a commit is not a JSON object: {e}") from e
    return None if value is None else str(value)


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
