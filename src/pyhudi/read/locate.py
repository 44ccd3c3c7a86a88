"""Find the table that a path belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import NotAHudiTableError
from pyhudi.storage import open_storage

_PROPERTIES = (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")


@dataclass(frozen=True, slots=True)
class TablePlace:
    """The table's root as given by the user, and the folder in it that was asked for (``""``: all of it)."""

    root: str
    subpath: str


def locate_table(path: str, options: Mapping[str, str] | None = None) -> TablePlace:
    """The table at ``path``, or, when ``path`` is a folder of a table, the table around it.

    Segments ``*`` at the end, with which old releases asked for all partitions, are left out.

    Raises:
        NotAHudiTableError: no table there or above.
    """
    scheme, separator, rest = path.rpartition("://")
    segments = rest.rstrip("/").split("/")
    while len(segments) > 1 and segments[-1] == "*":
        segments.pop()
    least = 2 if segments[0] == "" else 1  # the root of a file system or a bucket is asked last
    for count in range(len(segments), least - 1, -1):
        root = scheme + separator + "/".join(segments[:count])
        storage = open_storage(root, options)
        if any(storage.exists(name) for name in _PROPERTIES):
            return TablePlace(root, "/".join(segments[count:]))
    raise NotAHudiTableError(
        f"there is no Hudi table at {path!r}: neither it nor a folder above it has .hoodie/hoodie.properties"
    )
