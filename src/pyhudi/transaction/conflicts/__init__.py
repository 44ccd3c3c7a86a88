"""Conflicts between concurrent writers. Takes what a write has done and the timeline as it is when the write is to be
published, and gives the instant of another writer that stands against it, or None."""

from __future__ import annotations
