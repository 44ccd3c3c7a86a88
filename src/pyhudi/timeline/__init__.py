"""The timeline: instants, the active timeline in both layouts, its history, instant times, markers, heartbeats."""

from __future__ import annotations

from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.instants import Action, Instant, State
from pyhudi.timeline.layout import LAYOUT_1, LAYOUT_2, Layout
from pyhudi.timeline.metadata import REPLACED_SCHEMA, WRITE_STAT_SCHEMA, CommitMetadata, decode_commit, write_stats
from pyhudi.timeline.timeline import Timeline

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
