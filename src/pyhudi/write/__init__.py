"""Writes inside a task, independent of an engine.

Takes Arrow batches and a write context and returns data files and their write statuses.
"""

from __future__ import annotations
