"""Location of the table to which a path belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config import Options
from pyhudi.errors import NotAHudiTableError, StorageError, TableExistsError
from pyhudi.read.query.non_hudi_contents import describe_contents, describe_file, describe_other_format
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.table.config.properties_file import BACKUP_PATH, PATH
from pyhudi.table.meta_client import TableMetaClient

_PROPERTIES = (PATH, BACKUP_PATH)


@dataclass(frozen=True, slots=True)
class TableLocation:
    """The table's root as passed by the user, and the requested folder in it (``""``: all of it)."""

    root: str
    subpath: str


def locate_table(path: str, options: Mapping[str, str] | None = None) -> TableLocation:
    """Return the table at ``path``, or the table that contains the folder ``path``.

    Trailing segments ``*``, with which old releases selected all partitions, are dropped.

    Raises:
        NotAHudiTableError: There is no table at or above the path, or the table above has no such folder.
    """
    place = _around(path, options)
    if place is None:
        contents = describe_contents(path, options)
        raise NotAHudiTableError(
            f"there is no Hudi table at {path!r}: "
            + (contents or "neither it nor a folder above it has .hoodie/hoodie.properties")
        )
    storage = open_storage(place.root, options)
    if place.subpath and (_is_internal(place.subpath) or not _is_folder(storage, place.subpath)):
        pattern = "; patterns are supported only at the end, as '/*'" if set(place.subpath) & set("*?{[") else ""
        raise NotAHudiTableError(
            f"there is no Hudi table at {path!r}, and no partition {place.subpath!r} in the table above it at "
            f"{place.root!r}{pattern}; load {place.root!r} and filter by its partition columns"
        )
    return place


def open_table(path: str, options: Options) -> tuple[TableMetaClient, str]:
    """Open the table at ``path``, or the one that contains the folder ``path``. Return it with the requested folder
    (``""``: all of it).

    Nearly all paths are those of tables, so the search begins only where there is none.

    Raises:
        NotAHudiTableError: As `locate_table`.
    """
    try:
        return TableMetaClient.open(path, options), ""
    except NotAHudiTableError:
        place = locate_table(path, options)
        return TableMetaClient.open(place.root, options), place.subpath


def table_above(path: str, options: Mapping[str, str] | None) -> str | None:
    """Return the root of the table that contains a path; None if it is a table itself, or in none."""
    place = _around(path, options)
    return place.root if place is not None and place.subpath else None


def refuse_nested_table(path: str, options: Mapping[str, str] | None) -> None:
    """Refuse a file for a new table, a path inside another Hudi table, and the root of a Delta Lake or Iceberg table,
    because operations on that table treat every file below its root as its own.

    Raises:
        TableExistsError: The message has the other table.
    """
    other = describe_other_format(path, options)
    if other:
        raise TableExistsError(
            f"cannot create a table at {path!r}: {other}, and whose removal of unused files would delete those of the "
            "new table; choose another path, or delete that table first"
        )
    file = describe_file(path, options)
    if file:
        raise TableExistsError(f"cannot create a table at {path!r}: {file}")
    try:
        above = table_above(path, options)
    except StorageError:  # Write access to a folder does not imply access to its parents.
        return
    if above is not None:
        raise TableExistsError(
            f"cannot create a table at {path!r}, which is inside the Hudi table at {above!r}; write to {above!r} "
            "(its partition columns determine the folders), or to a path outside of it"
        )


def _around(path: str, options: Mapping[str, str] | None) -> TableLocation | None:
    scheme, separator, rest = path.rpartition("://")
    if not separator and path.startswith("file:"):  # Spark and Hadoop write file:/path
        scheme, rest = "file:", path.removeprefix("file:")
    segments = rest.rstrip("/").split("/")
    while len(segments) > 1 and segments[-1] == "*":
        segments.pop()
    min_segments = 2 if segments[0] == "" else 1  # The root of a file system or bucket is checked last.
    for count in range(len(segments), min_segments - 1, -1):
        root = scheme + separator + "/".join(segments[:count])
        storage = open_storage(root, options)
        if any(storage.exists(name) for name in _PROPERTIES):
            return TableLocation(root, "/".join(segments[count:]))
    return None


def _is_internal(subpath: str) -> bool:
    return subpath.split("/")[0] == META_FOLDER


def _is_folder(storage: Storage, path: str) -> bool:
    """Return True if there are files below a path, because object stores have no folders."""
    return bool(storage.list(path).num_rows or storage.list_dirs(path))
