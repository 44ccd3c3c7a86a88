"""Spark's record of the commits that a stream has read: the logs of its file source in the checkpoint location.

Each source of a query has a folder ``sources/<number>`` with one file per step of the source, and from time to time one
named ``<step>.compact`` with the entries of all steps up to it. The first line of a file is its version; every other
one is a JSON object with ``path``, ``timestamp`` and ``batchId``, the step. A source makes a step when it finds new
files, so that steps are not batches of the query: another source, or an operator with state, may cause batches without
new files. The file ``offsets/<batch>`` has the last step of each source that a batch includes: after its version and a
line about the batch, a line for each source, which is ``-`` before its first step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyhudi.errors import NotFoundError
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage

CHECKPOINT_PROPERTY = "pyhudi.streaming.checkpoint"
"""Local property of Spark's tasks with the checkpoint location of a query that was started while pyhudi is active."""
_SOURCES = "sources"
_OFFSETS = "offsets"
_VERSION = "v1"
_FIRST_STEP = 0


@dataclass(frozen=True, slots=True)
class SourceLog:
    """Files of a timeline that a stream has read before a batch.

    Attributes:
        read: Files of earlier batches.
        first: Files of the first batch that had any.
        has_begun: An earlier batch had files, of this timeline or of the one that the table had elsewhere.
    """

    read: frozenset[str]
    first: frozenset[str]
    has_begun: bool = True

    @classmethod
    def load(cls, checkpoint: Storage, timeline: str, batch: int) -> SourceLog | None:
        """Read the logs of a query.

        Args:
            checkpoint: Storage of the checkpoint location.
            timeline: URI of the folder of the timeline.
            batch: Number of the batch of the query, at least 1.

        Returns:
            The log; None if there is no log, or its format is not known. If several sources of the query read the
            timeline, the log of the one that has read least.
        """
        folder = urlsplit(timeline).path.rstrip("/")
        try:
            logs = [
                cls._from_steps(_files(checkpoint, source, folder), last)
                for source, last in enumerate(_last_steps(checkpoint, batch - 1))
            ]
        except (NotFoundError, ValueError, KeyError, TypeError):
            return None
        return min((log for log in logs if log is not None), key=lambda log: len(log.read), default=None)

    @classmethod
    def _from_steps(cls, steps: dict[str, int], last: int | None) -> SourceLog | None:
        if not steps:
            return None
        read = frozenset(name for name, step in steps.items() if last is not None and step <= last)
        return cls(read, frozenset(name for name in read if steps[name] == _FIRST_STEP), last is not None)


def files_of_batch(checkpoint: Storage, timeline: str, batch: int) -> frozenset[str] | None:
    """Return the files of a timeline that a batch of a query consists of, by the logs of its sources.

    Args:
        checkpoint: Storage of the checkpoint location.
        timeline: URI of the folder of the timeline.
        batch: Number of the batch.

    Returns:
        Names of files; None if there is no log, or its format is not known. If several sources of the query read the
        timeline, those of the one with the fewest.
    """
    folder = urlsplit(timeline).path.rstrip("/")
    try:
        last = _last_steps(checkpoint, batch)
        before = _last_steps(checkpoint, batch - 1) if batch else [None] * len(last)
        steps = [
            _files(checkpoint, source, folder) if now != earlier else {}
            for source, (earlier, now) in enumerate(zip(before, last, strict=True))
        ]
    except (NotFoundError, ValueError, KeyError, TypeError):
        return None
    found = [
        frozenset(name for name, step in files.items() if _is_between(step, earlier, now))
        for files, earlier, now in zip(steps, before, last, strict=True)
        if files
    ]
    return min(found, key=len, default=frozenset())


def _is_between(step: int, earlier: int | None, last: int | None) -> bool:
    """Return True if a batch up to the step ``last`` has a step and the batch before it, up to ``earlier``, has not."""
    return last is not None and step <= last and (earlier is None or step > earlier)


def _last_steps(checkpoint: Storage, batch: int) -> list[int | None]:
    """Return the last step of each source that the batches up to this one include; None for other kinds of sources and
    before the first step."""
    version, _, *sources = checkpoint.read(f"{_OFFSETS}/{batch}").decode().split("\n")
    if version != _VERSION:
        raise ValueError(f"{_OFFSETS}/{batch} has the version {version!r}")
    return [_last_step(line) for line in sources]


def _last_step(line: str) -> int | None:
    if not line.startswith("{"):
        return None
    step = json.loads(line).get("logOffset")
    return None if step is None or int(step) < _FIRST_STEP else int(step)


def _files(checkpoint: Storage, source: int, folder: str) -> dict[str, int]:
    """Return the first step of each file of a folder that a source has read, by the name of the file."""
    steps: dict[str, int] = {}
    for entry in _entries(checkpoint, f"{_SOURCES}/{source}"):
        path = unquote(urlsplit(entry["path"]).path)
        if path.rpartition("/")[0] == folder:
            name, step = file_name_of(path), int(entry["batchId"])
            steps[name] = min(step, steps.get(name, step))
    return steps


def _entries(checkpoint: Storage, folder: str) -> Iterator[dict[str, str]]:
    for path in checkpoint.list(folder)["path"].to_pylist():
        if not file_name_of(path).removesuffix(".compact").isdecimal():
            continue
        version, *lines = checkpoint.read(path).decode().split("\n")
        if version != _VERSION:
            raise ValueError(f"{path} has the version {version!r}")
        yield from (json.loads(line) for line in lines if line)
