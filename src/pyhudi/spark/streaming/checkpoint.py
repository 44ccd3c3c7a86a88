"""The micro-batches that a table has, as commits say it.

A commit of a streaming query names its batch in its extra metadata, as Apache Hudi's sink does: under
`CHECKPOINT_KEY` the JSON object ``{identifier: batch number}``. The commit and this note are one file, so a batch is in
the table exactly if its number is. Beside it, `QUERY_KEY` has ``{identifier: id of the query}``; a query keeps its id
with its checkpoint location, so that a new query under an identifier that is in use does not pass for the old one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CheckpointError, NotAHudiTableError
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.archive.archived_timeline import read_history
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
QUERY_KEY = "_pyhudi_streaming_query"
IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"


@dataclass(frozen=True, slots=True)
class SinkCheckpoint:
    """The last micro-batch under an identifier. ``query`` is None where Apache Hudi has written it."""

    identifier: str
    batch: int
    query: str | None = None

    def metadata(self) -> dict[str, str]:
        """Checkpoint that the commit of the batch holds."""
        found = {CHECKPOINT_KEY: _json({self.identifier: str(self.batch)})}
        if self.query is not None:
            found[QUERY_KEY] = _json({self.identifier: self.query})
        return found

    @classmethod
    def of_commit(cls, extra: Mapping[str, str], identifier: str) -> SinkCheckpoint | None:
        """Return the checkpoint of an identifier in a commit; None: there is none.

        Raises:
            CheckpointError: it cannot be understood.
        """
        batch = _named(extra.get(CHECKPOINT_KEY), identifier)
        if batch is None:
            return None
        if not batch.isdigit():
            raise CheckpointError(f"{CHECKPOINT_KEY} of a commit names the batch {batch!r}, which is no number")
        return cls(identifier, int(batch), _named(extra.get(QUERY_KEY), identifier))

    def holds(self, other: SinkCheckpoint) -> bool:
        """Return True if the table has that batch.

        Raises:
            CheckpointError: another query writes under this identifier.
        """
        if self.query is not None and other.query is not None and self.query != other.query:
            raise CheckpointError(
                f"the table has batches up to {self.batch} of another streaming query under the identifier "
                f"{self.identifier!r} (its id is {self.query}, this query's is {other.query}): this checkpoint "
                "location is not the one of that query. Start with that query's checkpoint location to go on, or give "
                f"{IDENTIFIER} a name of its own to write a second stream to the table"
            )
        return self.batch >= other.batch


def last_checkpoint(storage: Storage, identifier: str) -> SinkCheckpoint | None:
    """Return the checkpoint of the newest commit, archived ones included, that names the identifier; None if none does.

    Raises:
        CheckpointError: the commit cannot be understood.
    """
    try:
        client = TableMetaClient.open(storage)
    except NotAHudiTableError:
        return None
    for extra in _newest_first(client):
        found = SinkCheckpoint.of_commit(extra, identifier)
        if found is not None:
            return found
    return None


def check_follows(last: SinkCheckpoint | None, first: SinkCheckpoint) -> None:
    """Refuse a query that goes on from batches which the table has never got.

    Raises:
        CheckpointError: the checkpoint location is that of a stream into another table.
    """
    if last is None and first.batch > 0:
        raise CheckpointError(
            f"the stream goes on with batch {first.batch}, but no commit of the table names a batch under the "
            f"identifier {first.identifier!r}: the checkpoint location is of a stream into another table, or of "
            f"another identifier. Start with a new checkpoint location, or set {IDENTIFIER} to the identifier of "
            "the earlier batches"
        )


def _newest_first(client: TableMetaClient) -> Iterator[Mapping[str, str]]:
    """The extra metadata of the writes of a table, read one after another as they are asked for."""
    active = client.active_timeline()
    for instant in reversed(active.timeline.writes().completed().by_completion()):
        yield active.commit_metadata(instant).extra
    archived = read_history(client.storage, active.layout)
    archived = archived.filter(pc.is_in(archived["action"], value_set=pa.array(sorted(WRITE_ACTIONS))))
    for data in reversed(archived["metadata"].to_pylist()):
        if data is not None:
            yield decode_commit(data).extra


def _named(text: str | None, identifier: str) -> str | None:
    if not text:
        return None
    try:
        found = json.loads(text)
        value = found.get(identifier)
    except (ValueError, AttributeError) as e:
        raise CheckpointError(f"the checkpoint {text!r} of a commit is no JSON object: {e}") from e
    return None if value is None else str(value)


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
