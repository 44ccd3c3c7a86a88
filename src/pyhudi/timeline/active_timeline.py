"""Active timeline of a table: its instant files in storage, read by one listing and changed by atomic creates.

Every state transition creates one file that must not exist, so files are never partial or overwritten, and of several
writers that attempt the same transition exactly one succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pyhudi.errors import (
    CorruptInstantError,
    FormatError,
    InstantNotFoundError,
    NotFoundError,
    StorageError,
    TimelineError,
    UnansweredError,
)
from pyhudi.storage import Storage
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.instant_files import Stamp, content_of_completed, list_instant_files
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import Layout

_Content = TypeVar("_Content")
_PAUSES = (0.02, 0.2)
"""Seconds after which a file that is empty or cannot be decoded is read again."""


class ActiveTimeline:
    """Instant files as of the last load, plus the transitions made through this object.

    Listings are always of the storage. The content of a completed file is read once in a process, because each
    statement asks for that of the newest commits, and each request to an object store takes tens of milliseconds.

    Args:
        storage: Storage of the table.
        layout: Layout of the timeline.
        files: The instant files.
        stamps: Sizes and times of completed files, by name. Files without are read each time.
    """

    def __init__(
        self,
        storage: Storage,
        layout: Layout,
        files: Iterable[Instant],
        stamps: Mapping[str, Stamp] | None = None,
    ) -> None:
        self.storage = storage
        self.layout = layout
        self._files = {instant.file_name: instant for instant in files}
        self._stamps = dict(stamps or {})
        self._timeline: Timeline | None = None

    @classmethod
    def load(cls, storage: Storage, layout: Layout) -> ActiveTimeline:
        """List the timeline folder once."""
        return cls(storage, layout, *list_instant_files(storage, layout))

    def refresh(self) -> None:
        """Reload this object from the storage."""
        files, self._stamps = list_instant_files(self.storage, self.layout)
        self._files = {instant.file_name: instant for instant in files}
        self._timeline = None

    def reload(self) -> ActiveTimeline:
        """Return the current timeline in storage."""
        return ActiveTimeline.load(self.storage, self.layout)

    @property
    def timeline(self) -> Timeline:
        """Immutable view: one entry per instant, in its latest state."""
        if self._timeline is None:
            self._timeline = Timeline.from_files(self._files.values())
        return self._timeline

    @property
    def latest_time(self) -> str | None:
        """The latest requested or completion time; new instants are later. None: the timeline is empty."""
        times = [t for i in self.timeline for t in (i.requested, i.completion) if t is not None]
        return max(times, default=None)

    def __repr__(self) -> str:
        return f"ActiveTimeline({self.storage.root}, {self.timeline!r})"

    # --- reading -------------------------------------------------------------------------------------------------

    def path(self, instant: Instant) -> str:
        """Return the path of the instant's file relative to the root of the table."""
        return self.layout.path(instant.file_name)

    def states(self, instant: Instant) -> list[Instant]:
        """Return all files of the instant, latest state first."""
        same = (i for i in self._files.values() if i.requested == instant.requested and i.family == instant.family)
        return sorted(same, key=lambda i: i.state.rank, reverse=True)

    def inconsistent_instants(self) -> Iterator[list[Instant]]:
        """Return the files of completed instants that have no inflight file or two completed files.

        Interrupted archival and files that appear after the rollback of their instant leave such instants.
        """
        files: dict[tuple[str, str], list[Instant]] = {}
        for instant in self._files.values():
            files.setdefault((instant.requested, instant.family), []).append(instant)
        for same in files.values():
            states = [instant.state for instant in same]
            if State.COMPLETED in states and (State.INFLIGHT not in states or states.count(State.COMPLETED) > 1):
                yield same

    def in_state(self, instant: Instant, state: State) -> Instant | None:
        """Return the file of the instant in that state, if it exists."""
        return next((i for i in self.states(instant) if i.state is state), None)

    def read(self, instant: Instant) -> bytes:
        """Return the content of the instant's file.

        Raises:
            InstantNotFoundError: The instant was archived or rolled back.
        """
        try:
            return self.storage.read(self.path(instant))
        except NotFoundError as error:
            raise InstantNotFoundError(
                f"{self.storage.uri(self.path(instant))} no longer exists: the instant was archived or rolled "
                "back in the meantime; load the table again"
            ) from error

    def read_state(self, instant: Instant, state: State) -> bytes:
        """Return the content of the instant's file of another state, e.g. the requested plan of an inflight rollback.

        The plan of a compaction is read again if the file is empty, which its writer may not have closed.
        """
        state_instant = self.in_state(instant, state)
        if state_instant is None:
            raise InstantNotFoundError(f"{instant} has no {state.value.lower()} file in {self.layout.folder}")
        if state is State.REQUESTED and instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
            return next(filter(None, self._readings(state_instant)), b"")
        return self.read(state_instant)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the decoded metadata of a completed commit, deltacommit or replacecommit.

        Raises:
            CorruptInstantError: The file is empty, incomplete or not commit metadata.
        """

        def decoded() -> tuple[CommitMetadata, int]:
            metadata, data = self._decoded(instant, decode_commit)
            return metadata, len(data) + metadata.stats.nbytes

        return self._remembered(instant, decoded)

    def completed_record(self, instant: Instant) -> dict[str, Any]:
        """Return the decoded record of a completed clean, rollback, savepoint or restore.

        Raises:
            CorruptInstantError: The file is empty, incomplete or not such a record.
        """

        def decode(data: bytes) -> dict[str, Any]:
            return decode_record(instant.action, State.COMPLETED, data)

        fresh: list[dict[str, Any]] = []

        def content() -> tuple[bytes, int]:
            record, data = self._decoded(instant, decode)
            fresh.append(record)
            return data, len(data)

        data = self._remembered(instant, content)  # A record can be changed, so that each caller gets one of its own.
        return fresh[0] if fresh else decode(data)

    def _decoded(self, instant: Instant, decode: Callable[[bytes], _Content]) -> tuple[_Content, bytes]:
        """Return the content of a completed file, decoded and as it is."""
        for data in self._readings(instant):
            with suppress(FormatError):
                return decode(data), data
        with self.parsing(instant):
            return decode(data), data

    def _readings(self, instant: Instant) -> Iterator[bytes]:
        """Read the instant's file as often as the caller asks, a moment later each time, and three times at the most.

        On file systems such as the local one and HDFS a file that Apache Hudi creates is empty, or incomplete, until it
        is closed.
        """
        yield self.read(instant)
        for pause in _PAUSES:
            time.sleep(pause)
            yield self.read(instant)

    def stamp(self, instant: Instant) -> Stamp | None:
        """Return size and time of change of a completed file as listed: in layout 1 another file may take its place."""
        return self._stamps.get(instant.file_name)

    def _remembered(self, instant: Instant, make: Callable[[], tuple[_Content, int]]) -> _Content:
        return content_of_completed(self.storage, self.path(instant), self.stamp(instant), make)

    @contextmanager
    def parsing(self, instant: Instant) -> Iterator[None]:
        """Context in which the content of an instant's file is parsed.

        Args:
            instant: The instant in the state of that file.

        Raises:
            CorruptInstantError: A FormatError was raised. The message names the file and the solution.
        """
        try:
            yield
        except FormatError as error:
            raise self._corrupt(instant, error) from error

    def _corrupt(self, instant: Instant, cause: Exception) -> CorruptInstantError:
        file = self.storage.uri(self.path(instant))
        if instant.is_completed:
            cure = (
                "a killed writer left it incomplete, or it was damaged. Restore the file from a backup; without a "
                "backup, if no other writer is active, delete it: the write becomes pending again and the next "
                "writer rolls it back"
            )
        else:
            cure = (
                "a killed writer left it incomplete, or it was damaged. If no other writer is active, delete it "
                "together with the other pending files of this instant"
            )
        return CorruptInstantError(f"timeline file {file} cannot be parsed ({cause}): {cure}")

    # --- transitions ---------------------------------------------------------------------------------------------

    def create_requested(self, action: str, requested: str, content: bytes = b"") -> Instant:
        """Create the requested file. Raises AlreadyExistsError if another writer created the same instant."""
        return self._create(requested, action, State.REQUESTED, content)

    def to_inflight(self, instant: Instant, content: bytes = b"") -> Instant:
        """Create the inflight file. ``instant`` is the requested one (for savepoints, any)."""
        return self._create(instant.requested, instant.action, State.INFLIGHT, content)

    def complete(self, instant: Instant, content: bytes, completion: str | None = None) -> Instant:
        """Publish the instant. Layout 2 requires the completion time; layout 1 ignores it.

        If there are several writers, the caller holds the table lock. After an error the file is read, because the
        response may have been lost, or a repeated request may have failed because of the first one.

        Raises:
            UnansweredError: The file does not exist, or cannot be read, and may still appear.
            AlreadyExistsError: Another process has published the instant.
            StorageError: The file does not exist and will not appear.
        """
        if not content:
            raise TimelineError(f"{instant} cannot be completed with an empty file")
        if self.layout.version >= 2 and completion is None:
            raise TimelineError(f"{instant} requires a completion time in timeline layout 2")
        done = next((i for i in self.states(instant) if i.is_completed), None)
        if done is not None:
            raise TimelineError(f"{instant} is already completed: {done.file_name}")
        try:
            return self._create(instant.requested, instant.action, State.COMPLETED, content, completion)
        except StorageError as failure:
            return self._find_published(instant, content, completion, failure)

    def _find_published(
        self, instant: Instant, content: bytes, completion: str | None, failure: StorageError
    ) -> Instant:
        """Return the completed instant if its file exists with this content; otherwise raise the failure."""
        name = self.layout.file_name(instant.requested, instant.action, State.COMPLETED, completion)
        try:
            stored = self.storage.read(self.layout.path(name))
        except NotFoundError:
            raise failure from None
        except StorageError as again:
            raise UnansweredError(f"{failure}; reading the file failed, too ({again})") from failure
        if stored != content:
            raise failure
        return self._add_file(name)

    def delete(self, instant: Instant) -> None:
        """Delete the file of this state, if it exists."""
        self.storage.delete(self.path(instant))
        self._forget([instant])

    def delete_states(self, states: Iterable[Instant]) -> None:
        """Delete the files of several states, in no order, in as few requests as the storage allows."""
        gone = list(states)
        if not gone:
            return
        self.storage.delete_many([self.path(state) for state in gone])
        self._forget(gone)

    def _forget(self, states: Iterable[Instant]) -> None:
        for state in states:
            self._files.pop(state.file_name, None)
            self._stamps.pop(state.file_name, None)
        self._timeline = None

    def delete_pending(self, requested: str, action: str) -> None:
        """Delete the inflight, then the requested file of an instant (this order is required)."""
        probe = Instant(requested, action, State.INFLIGHT, None, "")
        for instant in self.states(probe):
            if not instant.is_completed:
                self.delete(instant)

    def _create(
        self, requested: str, action: str, state: State, content: bytes, completion: str | None = None
    ) -> Instant:
        name = self.layout.file_name(requested, action, state, completion)
        if self.layout.parse(name) is None:
            raise TimelineError(f"{name!r} is not a valid name of a timeline file")
        self.storage.create(self.layout.path(name), content)
        return self._add_file(name)

    def _add_file(self, name: str) -> Instant:
        """Return the instant of a file that exists now."""
        instant = self.layout.parse(name)
        assert instant is not None
        self._files[name] = instant
        self._stamps.pop(name, None)
        self._timeline = None
        return instant
