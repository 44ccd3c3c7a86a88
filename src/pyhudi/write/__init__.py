"""Writes inside a task, independent of an engine.

Takes Arrow batches and a write context (`settings`) and returns data files and their write statuses. `planning`
assigns records to file groups, `tasks` are the entry points of write tasks, `rows` prepares their rows, and `handles`
write the files.
"""

from __future__ import annotations
