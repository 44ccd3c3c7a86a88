"""The timeline files of the golden tables, read from the zips without unpacking them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout
from tests.golden.expected import NAMES, TABLES


@dataclass(frozen=True)
class TimelineFile:
    """One file of a timeline folder: of the table itself, or of its metadata table."""

    table: str
    metadata: bool
    layout: Layout
    name: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.table}{'/metadata' if self.metadata else ''}/{self.name}"


def timeline_files(table: str) -> Iterator[TimelineFile]:
    """Return all files of the active timelines of a golden table."""
    with zipfile.ZipFile(TABLES / f"{table}.zip") as archive:
        for entry in archive.namelist():
            folder, _, name = entry.rpartition("/")
            inner = folder.partition("/")[2]
            for root, metadata in (("", False), (".hoodie/metadata/", True)):
                for layout in (LAYOUT_1, LAYOUT_2):
                    if name and inner == f"{root}{layout.folder}":
                        yield TimelineFile(table, metadata, layout, name, archive.read(entry))


def all_files() -> list[TimelineFile]:
    return [file for table in NAMES for file in timeline_files(table)]
