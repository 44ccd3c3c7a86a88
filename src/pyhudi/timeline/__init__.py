"""The timeline: instants with their metadata, instant times, markers and heartbeats.

Takes a storage and a timeline layout; reads instants and creates requested, inflight and completed files.
"""

from __future__ import annotations

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import (
    REPLACED_SCHEMA,
    WRITE_STAT_SCHEMA,
    CommitMetadata,
    decode_commit,
    write_stats,
)
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout

__all__ = [
    "LAYOUT_1",
    "LAYOUT_2",
    "REPLACED_SCHEMA",
    "WRITE_STAT_SCHEMA",
    "Action",
    "ActiveTimeline",
    "CommitMetadata",
    "Instant",
    "Layout",
    "State",
    "Timeline",
    "decode_commit",
    "write_stats",
]
