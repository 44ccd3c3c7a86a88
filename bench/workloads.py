"""The engines that are measured on each Spark, and the parts of a table's life, in their order."""

from __future__ import annotations

from collections.abc import Iterable

ENGINES = {"3.5": ("parquet", "ours", "hudi", "delta", "iceberg"), "4": ("parquet", "ours")}
"""The others have no release that runs beside us on the newest Spark."""
WORKS = {
    "reads": ("scan", "partition", "point"),
    "upserts": ("upsert_1", "upsert_10"),
    "mor_upserts": ("mor_upsert_02", "mor_upsert_1", "mor_upsert_10"),
    "mor_reads": ("mor_scan_1", "mor_scan_5", "mor_scan_20", "mor_optimized"),
    "compaction": ("compaction",),
    "buckets": ("bucket_upsert_02", "bucket_upsert_1", "bucket_upsert_10"),
    "records": ("record_first_upsert_1", "record_upsert_1", "record_upsert_10", "record_point", "record_key"),
}
"""Part → what is measured in it."""
PARTS = tuple(WORKS)
"""Bulk insert is always there: the other parts need its table."""


def works_of(names: Iterable[str]) -> frozenset[str]:
    """Return the works that names select; a name is a part or one of its works."""
    return frozenset(work for name in names for work in WORKS.get(name, (name,)))
