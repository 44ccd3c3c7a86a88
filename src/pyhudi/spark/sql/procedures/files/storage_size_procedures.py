"""Procedure that shows folders, files and bytes below a path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.storage import open_storage

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")


def show_fs_path_detail(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show folders, files and bytes below a path, or below each folder in it, the largest first if ``sort``.

    Raises:
        QueryError: There is no such folder.
    """
    path = str(arguments.text("path")).rstrip("/")
    opts = Options.parse(session_settings(spark, path))
    storage = open_storage(path, opts)
    files = _visible(storage.list("", recursive=True))
    parent, _, folder = path.rpartition("/")
    is_root = parent.endswith("/")  # of a file system or bucket
    if not len(files) and not is_root and folder not in open_storage(parent or "/", opts).list_dirs():
        raise QueryError(f"there is no folder {path!r}")
    if not arguments.flag("is_sub"):
        return [_detail(storage.uri(), files["path"], files["size"])]
    heads = pc.replace_substring_regex(files["path"], r"(?s)/.*$", "")
    rows = []
    for name in pc.unique(heads).to_pylist():
        part = files.filter(pc.equal(heads, name))
        below = pc.utf8_slice_codeunits(part["path"], len(name) + 1)
        rows.append(_detail(storage.uri(name), below, part["size"]))
    if arguments.flag("sort"):
        rows.sort(key=lambda row: -row[2])
    return arguments.limited(rows)


def _visible(files: pa.Table) -> pa.Table:
    """Return the files without the checksum files that Hadoop adds to local ones."""
    return files.filter(pc.invert(pc.match_substring_regex(files["path"], r"(^|/)\.[^/]*\.crc$")))


def _detail(uri: str, paths: pa.ChunkedArray, sizes: pa.ChunkedArray) -> tuple[Any, ...]:
    """A row of the files of a folder; ``paths`` begin below it."""
    folders = pc.unique(pc.replace_substring_regex(paths, r"/?[^/]*$", "")).to_pylist()
    all_folders = {""} | {folder[:end] for folder in folders for end in _ends(folder)}
    size = pc.sum(sizes).as_py() or 0
    # Apache Hudi has the quotas, of which there are none, and the space under each other's names
    return (len(all_folders), len(paths), size, _in_units(size), uri, -1, size, -1)


def _ends(folder: str) -> Iterator[int]:
    """Yield the ends of the parent folders in a path, and that of the path."""
    yield from (at for at, letter in enumerate(folder) if letter == "/")
    yield len(folder)


def _in_units(size: int) -> str:
    number, unit = float(size), 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.2f}{_UNITS[unit]}"


PROCEDURES: dict[str, Procedure] = {"show_fs_path_detail": show_fs_path_detail}
