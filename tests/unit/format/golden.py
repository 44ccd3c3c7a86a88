"""Base files and log files inside the zipped golden tables."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterator
from pathlib import Path

TABLES = Path(__file__).parents[2] / "golden" / "tables"


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of the golden tables."""
    return tuple(sorted(path.stem for path in TABLES.glob("*.zip")))


def files(table: str, *, metadata_table: bool = False) -> Iterator[tuple[str, bytes]]:
    """Return paths and contents of a table's files; those of its metadata table only on request."""
    with zipfile.ZipFile(TABLES / f"{table}.zip") as archive:
        for name in archive.namelist():
            if not name.endswith("/") and (metadata_table or "/.hoodie/metadata/" not in name):
                yield name, archive.read(name)


def base_files(table: str) -> Iterator[tuple[str, bytes]]:
    """Return the Parquet base files of a table."""
    for name, data in files(table):
        if name.endswith(".parquet") and "/.hoodie/" not in name:
            yield name.rpartition("/")[2], data
