"""Markers: names of the data files that an unfinished write may have created.

A marker is created before its data file, and all markers are deleted when the write is completed or rolled back. Thus
leftovers of a failed write are found without listing the table. Markers are in ``.hoodie/.temp/<instant>/``, either as
one empty file each (``DIRECT``, used by pyhudi, because executors need no server) or as lines of the files
``MARKERS0``, ``MARKERS1``, … (``TIMELINE_SERVER_BASED``, the default of Apache Hudi on the JVM).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptInstantError
from pyhudi.format.file_names import file_names_of
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import META_FOLDER

TEMP_FOLDER = f"{META_FOLDER}/.temp"
TYPE_FILE = "MARKERS.type"

MARKER_SCHEMA = pa.schema(
    [("partition", pa.string()), ("file_name", pa.string()), ("data_path", pa.string()), ("io_type", pa.string())]
)
"""One row per marker: ``data_path`` is relative to the root of the table, ``partition`` is "" without partitions."""

_MARKER = r"(?s)^(?P<data_path>.*)\.marker\.(?P<io_type>CREATE|MERGE|APPEND)$"
_LISTED = re.compile(r"MARKERS\d+", re.ASCII)


class IOType(StrEnum):
    """Type of file operation of a task: create a new file (also a new log file from table version 8 on), create a new
    version of a base file, or append to a log file (table version 6)."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


class Markers:
    """Markers of one instant. Can be pickled, so that executors can create them."""

    def __init__(self, storage: Storage, instant: str) -> None:
        self.storage = storage
        self.instant = instant

    @property
    def folder(self) -> str:
        """Folder of the markers, relative to the root of the table."""
        return f"{TEMP_FOLDER}/{self.instant}"

    def create(self, partition: str, file_name: str, io_type: IOType) -> None:
        """Create the marker of a data file. Must be called before the file is created.

        Raises:
            AlreadyExistsError: Two attempts write the same file: its name contains the attempt of its task.
        """
        self.storage.create(self._path(partition, file_name, io_type), b"")

    def remove(self, partition: str, file_name: str, io_type: IOType) -> None:
        """Delete one marker, because its data file was not created, or was deleted."""
        self.storage.delete(self._path(partition, file_name, io_type))

    def _path(self, partition: str, file_name: str, io_type: IOType) -> str:
        return join_path(self.folder, partition, f"{file_name}.marker.{io_type.value}")

    def list(self) -> pa.Table:
        """Return all markers, of both types, as :data:`MARKER_SCHEMA`, without duplicates.

        Raises:
            CorruptInstantError: The type is unknown, a line is not a valid marker, or a file is incomplete. Then some
                data files may have no marker and can only be found by listing the table.
        """
        files = self.storage.list(self.folder, recursive=True)
        below = pc.utf8_slice_codeunits(files["path"], len(self.folder) + 1)
        is_marker = pc.match_substring_regex(below, _MARKER)
        # An empty log file of a partition cannot be confused with them: files of the other type are directly in the
        # folder.
        others = below.filter(pc.invert(is_marker)).to_pylist()
        if TYPE_FILE in others:
            self._check_type()
        chunks = [below.filter(is_marker).combine_chunks()]
        chunks += [self.read_lines(name) for name in others if _LISTED.fullmatch(name)]
        markers = pc.unique(pa.chunked_array(chunks, pa.string()))
        parts = pc.extract_regex(markers, _MARKER)
        data_path, io_type = pc.struct_field(parts, "data_path"), pc.struct_field(parts, "io_type")
        file_name = file_names_of(data_path)
        partition = pc.replace_substring_regex(data_path, r"/?[^/]*$", "")
        return pa.table([partition, file_name, data_path, io_type], schema=MARKER_SCHEMA)

    def _check_type(self) -> None:
        kind = self.storage.read(f"{self.folder}/{TYPE_FILE}").decode("utf-8", "replace").strip()
        if kind not in ("DIRECT", "TIMELINE_SERVER_BASED"):
            raise CorruptInstantError(f"the markers in {self.folder!r} have an unknown type {kind!r}")

    def read_lines(self, name: str) -> pa.Array:
        """Return the lines of a ``MARKERS<n>`` file.

        Apache Hudi writes the file anew for each batch of markers. Where it was killed, or is, in between, the file is
        empty or its last line incomplete, and markers of earlier batches, whose data files exist, are missing.
        """
        path = f"{self.folder}/{name}"
        try:
            text = self.storage.read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptInstantError(f"marker file {path!r} is not valid UTF-8: {error}") from error
        if not text.endswith("\n"):
            raise CorruptInstantError(f"marker file {path!r} is incomplete")
        lines = pa.array([line for line in text.split("\n") if line], pa.string())
        bad = lines.filter(pc.invert(pc.match_substring_regex(lines, _MARKER)))
        if len(bad):
            raise CorruptInstantError(f"marker file {path!r} has an invalid line: {bad[0].as_py()!r}")
        return lines

    def delete(self) -> None:
        """Delete all markers of the instant."""
        self.storage.delete_tree(self.folder)


def marked_instants(storage: Storage) -> Iterator[str]:
    """Return the instants that have markers."""
    yield from storage.list_dirs(TEMP_FOLDER)
