"""Selection and order of the log blocks of a slice that are merged, determined from headers alone.

The rules are those of Apache Hudi's log scan (``docs/format/core.md``, section 5.11).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from pyhudi.errors import FormatError
from pyhudi.format.log import DATA_BLOCKS, BlockType, LogBlock

_MERGED = DATA_BLOCKS | {BlockType.DELETE}


@dataclass(frozen=True, slots=True)
class CommittedInstants:
    """Committed instants of a table of version 6, where a log file can contain blocks of failed writes that its name
    does not identify.

    ``completed`` are those in the active timeline; instants before its ``start`` (None: there are none) are committed
    unless they are in ``pending``.
    """

    completed: frozenset[str]
    pending: frozenset[str]
    start: str | None

    def __contains__(self, instant: object) -> bool:
        if instant in self.completed:
            return True
        return (
            isinstance(instant, str) and self.start is not None and instant < self.start and instant not in self.pending
        )


@dataclass(frozen=True, slots=True)
class InstantsCompletedBy:
    """Instants that were completed by a ``time``, for queries that end there.

    From version 8 on, log files are selected by the completion of the instant in their names. Those of version 6, in a
    table that has been upgraded since, have the instant of their slice there, and blocks of all writes to that slice.

    ``completions`` are completion times by instant. Other instants count from their requested time on; those that were
    completed after the time must not be missing.
    """

    time: str
    completions: Mapping[str, str]

    def __contains__(self, instant: object) -> bool:
        return isinstance(instant, str) and self.completions.get(instant, instant) <= self.time


@dataclass(frozen=True, slots=True)
class BlockView:
    """Log blocks visible to a query: those of instants up to ``latest`` (None: all), in ``committed`` (None: the files
    have been selected by that) and in ``within`` (incremental queries; None: all).

    ``retries``: an instant may have been rolled back and done again, so that a rollback concerns only the blocks before
    its own. Otherwise later blocks of the instant are those of a task that outlived its write.
    """

    latest: str | None = None
    committed: Container[str] | None = None
    within: Container[str] | None = None
    retries: bool = False

    def shows(self, instant: str) -> bool:
        """Return True if data and deletes of that instant are visible."""
        return (
            (self.latest is None or instant <= self.latest)
            and (self.committed is None or instant in self.committed)
            and (self.within is None or instant in self.within)
        )


def valid_blocks(blocks: Iterable[LogBlock], view: BlockView) -> list[LogBlock]:
    """Return the valid data and delete blocks of a slice, in merge order.

    ``blocks`` are those of all log files of the slice, in file order. Blocks are omitted if the query does not see
    them, if they were rolled back, or if a log compaction has merged them into another block, which takes the place of
    the newest of them.

    Raises:
        FormatError: A block has no instant, or is an unknown command.
    """
    by_instant: dict[str, list[LogBlock]] = {}
    undone: set[str] = set()
    for block in blocks:
        if block.type is BlockType.COMMAND:
            target = _undone_by(block)
            if view.retries:
                by_instant.pop(target, None)
            else:
                undone.add(target)
        elif block.type in _MERGED:
            if block.instant is None:
                raise FormatError(f"the {block.type.name} block at offset {block.offset} has no instant")
            if view.shows(block.instant):
                by_instant.setdefault(block.instant, []).append(block)
    for instant in undone:
        by_instant.pop(instant, None)
    return [block for instant in _in_order(by_instant) for block in by_instant[instant]]


def _undone_by(block: LogBlock) -> str:
    if not block.is_rollback or block.target_instant is None:
        raise FormatError(f"the command block at offset {block.offset} is not a rollback of an instant")
    return block.target_instant


def _in_order(by_instant: dict[str, list[LogBlock]]) -> list[str]:
    """Return the instants whose blocks are valid, oldest first. ``by_instant`` is in the order of their first
    blocks."""
    result: list[str] = []
    taken_by: dict[str, str] = {}
    for instant in reversed(by_instant):
        compacted = by_instant[instant][0].compacted_times
        if compacted:
            # A later compaction replaces the blocks that an earlier one had replaced.
            taken_by.update(dict.fromkeys(compacted, taken_by.get(instant, instant)))
            continue
        final = taken_by.get(instant, instant)
        if final not in result:
            result.append(final)
    return result[::-1]
