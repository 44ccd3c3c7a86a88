"""Changes of partitions in a catalog that make them those of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyhudi.catalog_sync.catalogs.catalog_entries import CatalogPartition
from pyhudi.catalog_sync.partitions.partition_extractors import PartitionExtractor
from pyhudi.errors import CatalogError

Values: TypeAlias = tuple[str, ...]
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """Partitions to add, to give another location, to leave as they are, and, by their values, to drop."""

    add: tuple[CatalogPartition, ...]
    move: tuple[CatalogPartition, ...]
    keep: tuple[CatalogPartition, ...]
    drop: tuple[Values, ...]


def partitions_of_paths(
    paths: Iterable[str], extractor: PartitionExtractor, location: str, fields: Sequence[str]
) -> dict[Values, CatalogPartition]:
    """Return the partitions of paths, by their values.

    Args:
        paths: Paths of partitions, relative to the table.
        extractor: Values of a path.
        location: URI of the table.
        fields: Partition columns.

    Raises:
        CatalogError: A path has another form than the extractor takes, or two paths have the same values.
    """
    made: dict[Values, CatalogPartition] = {}
    for path in paths:
        values = extractor(path)
        if len(values) != len(fields):
            raise CatalogError(
                f"the path of partition {path!r} has {len(values)} values for the partition columns "
                f"{', '.join(fields)}; set hoodie.datasource.hive_sync.partition_extractor_class to the extractor of "
                "such paths"
            )
        partition = CatalogPartition(values, f"{location.rstrip('/')}/{path}")
        other = made.setdefault(values, partition)
        if other != partition:
            raise CatalogError(f"{other.location} and {partition.location} would be the same partition {values}")
    return made


def plan_changes(
    wanted: dict[Values, CatalogPartition], stored: Iterable[CatalogPartition], gone: Iterable[Values] | None = None
) -> PartitionChanges:
    """Compare partitions.

    Args:
        wanted: Partitions that the catalog should have.
        stored: Partitions that it has.
        gone: Values of partitions that it should not have; None: of all others.
    """
    present = {one.values: one for one in stored}
    both = [wanted[values] for values in wanted if values in present]
    at_place = {one.values: same_place(one.location) == same_place(present[one.values].location) for one in both}
    kept = [one for one in both if at_place[one.values]]
    moved = [one for one in both if not at_place[one.values]]
    unwanted = present.keys() - wanted.keys() if gone is None else present.keys() & set(gone) - wanted.keys()
    added = (wanted[values] for values in wanted if values not in present)
    return PartitionChanges(tuple(added), tuple(moved), tuple(kept), tuple(sorted(unwanted)))


def same_place(location: str) -> str:
    """Return what the URIs of a folder have in common: bucket and path. Schemes differ between engines, as s3 and s3a
    do."""
    path = _SCHEME.sub("", location)
    return "/" + "/".join(part for part in path.split("/") if part)
