"""Find the table that a path belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import NotAHudiTableError, StorageError, TableExistsError
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.properties_file import META_FOLDER

_PROPERTIES = (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")


@dataclass(frozen=True, slots=True)
class TableLocation:
    """The table's root as given by the user, and the folder in it that was asked for (``""``: all of it)."""

    root: str
    subpath: str


def locate_table(path: str, options: Mapping[str, str] | None = None) -> TableLocation:
    """The table at ``path``, or, when ``path`` is a folder of a table, the table around it.

    Segments ``*`` at the end, with which old releases asked for all partitions, are left out.

    Raises:
        NotAHudiTableError: no table there or above, or no folder of the table above has that path.
    """
    place = _around(path, options)
    if place is None:
        raise NotAHudiTableError(
            f"there is no Hudi table at {path!r}: neither it nor a folder above it has .hoodie/hoodie.properties"
        )
    storage = open_storage(place.root, options)
    if place.subpath and (_is_internal(place.subpath) or not _is_folder(storage, place.subpath)):
        pattern = "; patterns are taken at the end alone, as '/*'" if set(place.subpath) & set("*?{[") else ""
        raise NotAHudiTableError(
            f"there is no Hudi table at {path!r}, and no partition {place.subpath!r} in the table above it at "
            f"{place.root!r}{pattern}; load {place.root!r} and filter by its partition columns"
        )
    return place


def table_above(path: str, options: Mapping[str, str] | None = None) -> str | None:
    """The root of the table that a path lies in; None: it is a table's own, or in none."""
    place = _around(path, options)
    return place.root if place is not None and place.subpath else None


def refuse_nested_table(path: str, options: Mapping[str, str] | None = None) -> None:
    """Refuse a path in another table for a new one: what reads, cleans or rolls back that table takes every file below
    its root for its own.

    Raises:
        TableExistsError: names the table above.
    """
    try:
        above = table_above(path, options)
    except StorageError:  # who may write to a folder need not be allowed to look above it
        return
    if above is not None:
        raise TableExistsError(
            f"no table can be made at {path!r}, which lies in the Hudi table at {above!r}; write to {above!r} (its "
            "partition columns tell where rows go), or to a path outside of it"
        )


def _around(path: str, options: Mapping[str, str] | None) -> TableLocation | None:
    scheme, separator, rest = path.rpartition("://")
    segments = rest.rstrip("/").split("/")
    while len(segments) > 1 and segments[-1] == "*":
        segments.pop()
    least = 2 if segments[0] == "" else 1  # the root of a file system or a bucket is asked last
    for count in range(len(segments), least - 1, -1):
        root = scheme + separator + "/".join(segments[:count])
        storage = open_storage(root, options)
        if any(storage.exists(name) for name in _PROPERTIES):
            return TableLocation(root, "/".join(segments[count:]))
    return None


def _is_internal(subpath: str) -> bool:
    return subpath.split("/")[0] == META_FOLDER


def _is_folder(storage: Storage, path: str) -> bool:
    """True if there is anything below a path; object stores know no other folders."""
    return bool(storage.list(path).num_rows or storage.list_dirs(path))
