"""The two timeline layouts: location and names of instant files.

Layout 1 (table versions up to 7): ``.hoodie/<instant>.<action>[.<state>]``. Layout 2 (8 and later):
``.hoodie/timeline/<instant>[_<completion>].<action>[.<state>]``. In both, the inflight file of a commit is
``<instant>.inflight``, without the action, and a compaction completes as ``commit``, a log compaction as
``deltacommit`` and a clustering as ``replacecommit``. Layout 1 has no action ``clustering``: clusterings are planned as
``replacecommit``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pyhudi.config import property_keys
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.timeline.instant import ACTIONS, Action, Instant, State, completed_action

_NAME = re.compile(r"(\d{14,})(?:_(\d{14,}))?\.([a-z]+)(?:\.(requested|inflight))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Layout:
    """A timeline layout with its folders (relative to the root of the table)."""

    version: int
    folder: str
    history: str

    @classmethod
    def v1(cls, archive_folder: str = "archived") -> Layout:
        """Return layout 1; ``archive_folder`` is ``hoodie.archivelog.folder``."""
        return cls(1, META_FOLDER, f"{META_FOLDER}/{archive_folder}" if archive_folder else META_FOLDER)

    @classmethod
    def v2(cls, timeline_path: str = "timeline", history_path: str = "history") -> Layout:
        """Return layout 2; the arguments are ``hoodie.timeline.path`` and ``hoodie.timeline.history.path``."""
        folder = f"{META_FOLDER}/{timeline_path}" if timeline_path else META_FOLDER
        return cls(2, folder, f"{folder}/{history_path}" if history_path else folder)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Layout:
        """Return the layout of a table from its ``hoodie.properties``."""
        version = int(properties.get(property_keys.VERSION, "6"))
        layout = int(properties.get(property_keys.TIMELINE_LAYOUT_VERSION, "2" if version >= 8 else "1"))
        if layout >= 2:
            return cls.v2(
                properties.get(property_keys.TIMELINE_PATH, "timeline"),
                properties.get(property_keys.TIMELINE_HISTORY_PATH, "history"),
            )
        return cls.v1(properties.get(property_keys.ARCHIVELOG_FOLDER, "archived"))

    def parse(self, name: str) -> Instant | None:
        """Return the instant of a file name, or None if the file does not belong to the timeline.

        A completed file of layout 2 without a completion time (not written by any current release) is considered
        completed and ordered by its requested time.
        """
        return _parsed(self.version, name)

    def file_name(self, requested: str, action: str, state: State, completion: str | None = None) -> str:
        """Return the name of an instant's file; for a completed one, with the completed form of ``action``."""
        if state is State.COMPLETED:
            stem = f"{requested}_{completion}" if self.version >= 2 else requested
            return f"{stem}.{completed_action(action)}"
        pending = Action.REPLACE_COMMIT if self.version == 1 and action == Action.CLUSTERING else action
        if state is State.INFLIGHT and pending == Action.COMMIT:
            return f"{requested}.inflight"
        return f"{requested}.{pending}.{state.value.lower()}"

    def path(self, file_name: str) -> str:
        """Return the path of a timeline file relative to the root of the table."""
        return f"{self.folder}/{file_name}"


@lru_cache(maxsize=8192)  # an active timeline is listed many times by a write
def _parsed(version: int, name: str) -> Instant | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    requested, completion, action, suffix = match.groups()
    if action == "inflight" and suffix is None and completion is None:
        return Instant(requested, Action.COMMIT, State.INFLIGHT, None, name)
    if action not in ACTIONS:
        return None
    if suffix is not None:
        if completion is not None:
            return None
        return Instant(requested, action, State(suffix.upper()), None, name)
    if completion is not None and version < 2:
        return None
    return Instant(requested, action, State.COMPLETED, completion, name)


LAYOUT_1 = Layout.v1()
LAYOUT_2 = Layout.v2()
