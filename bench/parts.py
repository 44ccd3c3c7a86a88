"""The parts of a table's life that are measured, in their order."""

from __future__ import annotations

PARTS = ("reads", "upserts", "mor_upserts", "mor_reads", "compaction", "buckets", "records")
"""Bulk insert is always there: the other parts need its table."""
