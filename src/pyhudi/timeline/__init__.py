"""The timeline: instants with their metadata, instant times, markers and heartbeats.

Takes a storage and a timeline layout; reads instants and creates requested, inflight and completed files.
"""

from __future__ import annotations
