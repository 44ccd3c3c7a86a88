"""Instant files of an active timeline as they are listed, and the contents of completed ones, which never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage
from pyhudi.storage.byte_bounded_cache import ByteBoundedCache
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.timeline_layout import Layout

_COMPLETED = ByteBoundedCache(32 * 1024 * 1024)
"""Contents of completed files by storage, path, size and time of change. A file that takes the place of a deleted one,
as another attempt at a plan does in layout 1, has another time."""
_Content = TypeVar("_Content")
Stamp = tuple[int, int]
"""Size and modification time (epoch milliseconds) of a file as listed."""


def list_instant_files(storage: Storage, layout: Layout) -> tuple[list[Instant], dict[str, Stamp]]:
    """Return the instant files, and the stamps of completed ones by name."""
    listing = storage.list(layout.folder)
    instants, stamps = [], {}
    for path, *stamp in zip(*(listing[name].to_pylist() for name in ("path", "size", "mtime_ms")), strict=True):
        instant = layout.parse(file_name_of(path))
        if instant is not None:
            instants.append(instant)
            if instant.is_completed:
                stamps[instant.file_name] = (stamp[0], stamp[1])
    return instants, stamps


def content_of_completed(
    storage: Storage, path: str, stamp: Stamp | None, make: Callable[[], tuple[_Content, int]]
) -> _Content:
    """Return the content of a completed file, which a process reads once.

    Args:
        storage: Storage of the table.
        path: Path of the file.
        stamp: The file as listed; None if it is not known, so that the content is read.
        make: Function that returns the content and its size in bytes.
    """
    if stamp is None:
        return make()[0]
    content: _Content = _COMPLETED.get((storage.root, path, stamp), make)
    return content
