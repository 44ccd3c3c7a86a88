"""Spark's record of the commits that a stream has read: the log of its file source in the checkpoint location.

Each source of a query has a folder ``sources/<number>`` with one file per batch, and from time to time one named
``<batch>.compact`` with the entries of all batches up to it. The first line of a file is its version; every other one
is a JSON object with ``path``, ``timestamp`` and ``batchId``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyhudi.format.file_names import file_name_of

if TYPE_CHECKING:
    from pyhudi.storage import Storage

CHECKPOINT_PROPERTY = "pyhudi.streaming.checkpoint"
"""Local property of Spark's tasks with the checkpoint location of a query that was started while pyhudi is active."""
_SOURCES = "sources"
_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The first batch of each timeline file that a stream has read, by the name of the file."""

    batches: dict[str, int]

    @classmethod
    def load(cls, checkpoint: Storage, timeline: str) -> SourceLog | None:
        """Read the log of all sources of a query.

        Args:
            checkpoint: Storage of the checkpoint location.
            timeline: URI of the folder of the timeline.

        Returns:
            The log; None if there is none, or it has a form that is not known.
        """
        batches: dict[str, int] = {}
        folder = urlsplit(timeline).path.rstrip("/")
        try:
            for entry in _entries(checkpoint):
                path = unquote(urlsplit(entry["path"]).path)
                if path.rpartition("/")[0] == folder:
                    name, batch = file_name_of(path), int(entry["batchId"])
                    batches[name] = min(batch, batches.get(name, batch))
        except (ValueError, KeyError, TypeError):
            return None
        return cls(batches) if batches else None

    def before(self, batch: int) -> set[str]:
        """Return the files that belong to earlier batches than the given one."""
        return {name for name, number in self.batches.items() if number < batch}

    def of_first_batch(self) -> set[str]:
        """Return the files of the first batch."""
        return {name for name, number in self.batches.items() if number == 0}


def _entries(checkpoint: Storage) -> Iterator[dict[str, str]]:
    for source in checkpoint.list_dirs(_SOURCES):
        for path in checkpoint.list(f"{_SOURCES}/{source}")["path"].to_pylist():
            if not file_name_of(path).removesuffix(".compact").isdecimal():
                continue
            version, *lines = checkpoint.read(path).decode().split("\n")
            if version != _VERSION:
                raise ValueError(f"{path} has the version {version!r}")
            yield from (json.loads(line) for line in lines if line)
