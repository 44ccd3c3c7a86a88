"""Which blocks count, and in which order."""

from __future__ import annotations

import pytest

from pyhudi.errors import FormatError
from pyhudi.format.log import BlockType, Header, LogBlock
from pyhudi.format.range_reader import BytesRanges
from pyhudi.merge.logs.valid_log_blocks import BlockView, CommittedInstants, valid_blocks

NOTHING = BytesRanges(b"")


def block(instant: int | None, kind: BlockType = BlockType.AVRO_DATA, **headers: str) -> LogBlock:
    """A block without content."""
    found = {Header[name]: value for name, value in headers.items()}
    if instant is not None:
        found[Header.INSTANT_TIME] = str(instant)
    return LogBlock(kind, found, 0, 0, 0, 0, NOTHING)


def rollback(instant: int, target: int) -> LogBlock:
    return block(instant, BlockType.COMMAND, TARGET_INSTANT_TIME=str(target), COMMAND_BLOCK_TYPE="0")


def compacted(instant: int, *of: int) -> LogBlock:
    return block(instant, COMPACTED_BLOCK_TIMES=",".join(map(str, of)))


def order(*blocks: LogBlock, view: BlockView | None = None) -> list[int]:
    """Instants of the blocks that count."""
    return [int(b.instant or 0) for b in valid_blocks(blocks, view or BlockView())]


def test_all_blocks_in_the_order_of_the_files() -> None:
    assert order(block(2), block(1), block(2, BlockType.DELETE), block(3)) == [2, 2, 1, 3]


def test_what_is_no_data_does_not_count() -> None:
    assert order(block(1), block(2, BlockType.CDC_DATA), block(None, BlockType.CORRUPT)) == [1]


def test_rolled_back_blocks_are_gone_wherever_they_stand() -> None:
    assert order(block(1), block(2), rollback(5, 2), block(3)) == [1, 3]
    assert order(block(1), block(2), block(3), rollback(5, 2)) == [1, 3]
    assert order(block(1), rollback(5, 2), block(2), block(3)) == [1, 3]


def test_blocks_after_a_rollback_count_where_instants_are_retried() -> None:
    view = BlockView(retries=True)
    assert order(block(1), block(2), rollback(5, 2), block(3), block(2), view=view) == [1, 3, 2]
    assert order(block(1), block(2), block(2), rollback(5, 2), view=view) == [1]


def test_a_rollback_is_heard_even_where_its_own_instant_is_not_seen() -> None:
    assert order(block(1), block(2), rollback(9, 2), view=BlockView(latest="3")) == [1]


def test_a_query_sees_blocks_up_to_its_instant() -> None:
    assert order(block(1), block(2), block(3), view=BlockView(latest="2")) == [1, 2]
    assert order(block(1), block(2), block(3), view=BlockView(within={"2", "3"})) == [2, 3]


def test_blocks_of_uncommitted_instants() -> None:
    committed = CommittedInstants(frozenset({"5", "7"}), frozenset({"3", "6"}), start="4")
    # archived, archived but still pending, on the timeline, pending, never heard of
    assert order(*map(block, (2, 3, 5, 6, 8, 7)), view=BlockView(committed=committed)) == [2, 5, 7]
    assert order(block(1), view=BlockView(committed=CommittedInstants(frozenset(), frozenset(), None))) == []


def test_a_log_compaction_stands_where_the_newest_of_its_blocks_stood() -> None:
    assert order(block(1), block(2), block(3), compacted(4, 1, 2), block(5)) == [4, 3, 5]
    assert order(block(1), block(2), compacted(4, 1, 2), block(5)) == [4, 5]


def test_log_compactions_of_log_compactions() -> None:
    blocks = (block(1), block(2), compacted(3, 1, 2), block(4), compacted(6, 3, 4), block(7))
    assert order(*blocks) == [6, 7]
    # the newest one lists all instants
    assert order(block(1), block(2), compacted(3, 1, 2), block(4), block(5), compacted(6, 1, 2, 3, 4)) == [6, 5]


def test_a_log_compaction_that_was_rolled_back() -> None:
    assert order(block(1), block(2), compacted(3, 1, 2), rollback(4, 3)) == [1, 2]


def test_a_log_compaction_outside_the_range_of_an_incremental_query() -> None:
    blocks = (block(1), block(2), compacted(3, 1, 2))
    assert order(*blocks, view=BlockView(within={"1", "2"})) == [1, 2]
    assert order(*blocks, view=BlockView(within={"2", "3"})) == [3]


def test_what_cannot_be_understood() -> None:
    with pytest.raises(FormatError, match="has no instant"):
        order(block(None))
    with pytest.raises(FormatError, match="not a rollback"):
        order(block(1, BlockType.COMMAND, COMMAND_BLOCK_TYPE="7", TARGET_INSTANT_TIME="1"))
