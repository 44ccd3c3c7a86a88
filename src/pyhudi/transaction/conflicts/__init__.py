"""Conflicts between concurrent writers.

Takes the changes of a write and the timeline at its publication, and returns the conflicting instant of another writer,
or None.
"""

from __future__ import annotations
