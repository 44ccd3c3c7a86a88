"""Writes inside a task, without an engine. Takes Arrow batches and a write context and gives data files and their
write statuses.
"""

from __future__ import annotations
