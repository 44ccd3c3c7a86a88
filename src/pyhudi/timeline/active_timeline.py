"""The active timeline of a table: its instant files in storage, read by one listing and moved on by atomic creates.

Every transition adds one file that must not exist yet, so a file is never half-written or overwritten, and of two
writers that race for the same transition exactly one wins.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyhudi.errors import (
    CorruptInstantError,
    FormatError,
    InstantNotFoundError,
    NotFoundError,
    StorageError,
    TimelineError,
    UnansweredError,
)
from pyhudi.timeline.action_metadata import decode_record
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import Layout

if TYPE_CHECKING:
    from pyhudi.storage.storage_protocol import Storage

_REMEMBERED_BYTES = 1 << 16
"""Size up to which commits are not decoded again while they are among the last."""


@functools.lru_cache(maxsize=32)
def _decoded(data: bytes) -> CommitMetadata:
    return decode_commit(data)


class ActiveTimeline:
    """Instant files as of the last load, plus the transitions made through this object."""

    def __init__(self, storage: Storage, layout: Layout, files: Iterable[Instant]) -> None:
        self.storage = storage
        self.layout = layout
        self._files = {instant.file_name: instant for instant in files}
        self._timeline: Timeline | None = None

    @classmethod
    def load(cls, storage: Storage, layout: Layout) -> ActiveTimeline:
        """List the timeline folder once."""
        return cls(storage, layout, _listed(storage, layout))

    def refresh(self) -> None:
        """Reload this object from the storage."""
        self._files = {instant.file_name: instant for instant in _listed(self.storage, self.layout)}
        self._timeline = None

    def reload(self) -> ActiveTimeline:
        """The timeline as it stands in storage now."""
        return ActiveTimeline.load(self.storage, self.layout)

    @property
    def timeline(self) -> Timeline:
        """The immutable view: one instant each, in its latest state."""
        if self._timeline is None:
            self._timeline = Timeline.of_files(self._files.values())
        return self._timeline

    def __repr__(self) -> str:
        return f"ActiveTimeline({self.storage.root}, {self.timeline!r})"

    # --- reading -------------------------------------------------------------------------------------------------

    def path(self, instant: Instant) -> str:
        """Path of the instant's file relative to the table's root."""
        return self.layout.path(instant.file_name)

    def states(self, instant: Instant) -> list[Instant]:
        """Return all files of the instant, furthest state first."""
        same = (i for i in self._files.values() if i.requested == instant.requested and i.family == instant.family)
        return sorted(same, key=lambda i: i.state.rank, reverse=True)

    def half_states(self) -> Iterator[list[Instant]]:
        """The files of each completed instant that has no inflight file, or two completed ones: archival that was cut
        off leaves such, and so do files that appear after the instant was rolled back."""
        files: dict[tuple[str, str], list[Instant]] = {}
        for instant in self._files.values():
            files.setdefault((instant.requested, instant.family), []).append(instant)
        for same in files.values():
            states = [instant.state for instant in same]
            if State.COMPLETED in states and (State.INFLIGHT not in states or states.count(State.COMPLETED) > 1):
                yield same

    def in_state(self, instant: Instant, state: State) -> Instant | None:
        """The file of the instant in that state, if there."""
        return next((i for i in self.states(instant) if i.state is state), None)

    def read(self, instant: Instant) -> bytes:
        """Content of the instant's file; InstantNotFoundError when it has gone (archived or rolled back)."""
        try:
            return self.storage.read(self.path(instant))
        except NotFoundError as e:
            raise InstantNotFoundError(
                f"{self.storage.uri(self.path(instant))} is no longer there: the instant was archived or rolled back "
                "meanwhile; load the table again"
            ) from e

    def read_state(self, instant: Instant, state: State) -> bytes:
        """Content of the instant's file of another state, e.g. the requested plan of an inflight rollback."""
        found = self.in_state(instant, state)
        if found is None:
            raise InstantNotFoundError(f"{instant} has no {state.value.lower()} file in {self.layout.folder}")
        return self.read(found)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Decoded metadata of a completed commit, deltacommit or replacecommit.

        Raises:
            CorruptInstantError: the file is empty, half-written or no commit metadata.
        """
        data = self.read(instant)
        with self.parsing(instant):
            return _decoded(data) if len(data) <= _REMEMBERED_BYTES else decode_commit(data)

    def completed_record(self, instant: Instant) -> dict[str, Any]:
        """Decoded record of a completed clean, rollback, savepoint or restore.

        Raises:
            CorruptInstantError: the file is empty, half-written or no such record.
        """
        with self.parsing(instant):
            return decode_record(instant.action, State.COMPLETED, self.read(instant))

    @contextmanager
    def parsing(self, instant: Instant) -> Iterator[None]:
        """Context in which the content of an instant's file is parsed.

        Args:
            instant: The instant in the state of that file.

        Raises:
            CorruptInstantError: a FormatError was raised; the text names the file and what to do.
        """
        try:
            yield
        except FormatError as e:
            raise self._corrupt(instant, e) from e

    def _corrupt(self, instant: Instant, cause: Exception) -> CorruptInstantError:
        file = self.storage.uri(self.path(instant))
        if instant.is_completed:
            cure = (
                "it was half-written by a writer that died, or damaged. Restore the file from a backup; if there is "
                "none and no other writer is active, delete it: the write becomes pending again and the next writer "
                "rolls it back"
            )
        else:
            cure = (
                "it was half-written by a writer that died, or damaged. If no other writer is active, delete it "
                "together with the other pending files of this instant"
            )
        return CorruptInstantError(f"timeline file {file} cannot be parsed ({cause}): {cure}")

    # --- transitions ---------------------------------------------------------------------------------------------

    def create_requested(self, action: str, requested: str, content: bytes = b"") -> Instant:
        """Announce an instant. AlreadyExistsError when another writer announced the same one."""
        return self._create(requested, action, State.REQUESTED, content)

    def to_inflight(self, instant: Instant, content: bytes = b"") -> Instant:
        """Move an instant to inflight; ``instant`` is the requested one (or, for savepoints, any)."""
        return self._create(instant.requested, instant.action, State.INFLIGHT, content)

    def complete(self, instant: Instant, content: bytes, completion: str | None = None) -> Instant:
        """Publish the instant. Layout 2 needs the completion time; layout 1 ignores it.

        The caller holds the table lock when there are several writers. Whatever the storage answers, the file is
        looked for: the answer may have been lost, or a request that was sent twice have met its first one.

        Raises:
            UnansweredError: the file is not there, or cannot be looked for, and may yet appear.
            AlreadyExistsError: somebody else has published the instant.
            StorageError: the file is not there and will not appear.
        """
        if not content:
            raise TimelineError(f"{instant} cannot be completed with an empty file")
        if self.layout.version >= 2 and completion is None:
            raise TimelineError(f"{instant} needs a completion time in timeline layout 2")
        done = next((i for i in self.states(instant) if i.is_completed), None)
        if done is not None:
            raise TimelineError(f"{instant} has been completed already: {done.file_name}")
        try:
            return self._create(instant.requested, instant.action, State.COMPLETED, content, completion)
        except StorageError as failure:
            return self._look_for(instant, content, completion, failure)

    def _look_for(self, instant: Instant, content: bytes, completion: str | None, failure: StorageError) -> Instant:
        """The completed instant if its file is there, with the content; else the failure is raised."""
        name = self.layout.file_name(instant.requested, instant.action, State.COMPLETED, completion)
        try:
            found = self.storage.read(self.layout.path(name))
        except NotFoundError:
            raise failure from None
        except StorageError as again:
            raise UnansweredError(f"{failure}; nor could it be looked for ({again})") from failure
        if found != content:
            raise failure
        return self._known(name)

    def delete(self, instant: Instant) -> bool:
        """Remove the file of this one state; False when it was not there."""
        there = self.storage.delete(self.path(instant))
        self._files.pop(instant.file_name, None)
        self._timeline = None
        return there

    def delete_pending(self, requested: str, action: str) -> None:
        """Remove the inflight, then the requested file of an instant (the order in which they must vanish)."""
        probe = Instant(requested, action, State.INFLIGHT, None, "")
        for instant in self.states(probe):
            if not instant.is_completed:
                self.delete(instant)

    def _create(
        self, requested: str, action: str, state: State, content: bytes, completion: str | None = None
    ) -> Instant:
        name = self.layout.file_name(requested, action, state, completion)
        if self.layout.parse(name) is None:
            raise TimelineError(f"{name!r} is no name of a timeline file")
        self.storage.create(self.layout.path(name), content)
        return self._known(name)

    def _known(self, name: str) -> Instant:
        """The instant of a file that is there now."""
        instant = self.layout.parse(name)
        assert instant is not None
        self._files[name] = instant
        self._timeline = None
        return instant


def _listed(storage: Storage, layout: Layout) -> list[Instant]:
    paths: list[str] = storage.list(layout.folder)["path"].to_pylist()
    parsed = (layout.parse(path.rpartition("/")[2]) for path in paths)
    return [instant for instant in parsed if instant is not None]
