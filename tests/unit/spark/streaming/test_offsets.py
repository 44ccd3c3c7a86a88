"""Which commits a micro-batch of the streaming source is about."""

from __future__ import annotations

import pytest

from pyhudi.errors import CheckpointError, QueryError
from pyhudi.read.query import Query
from pyhudi.spark.streaming.offsets import StartOffset, batch_query
from pyhudi.table.pinned_table import PinnedTable
from tests.tables import HandMadeTable, at

EARLIEST = StartOffset()


@pytest.fixture(params=[6, 9])
def table(request, tmp_path) -> PinnedTable:
    made = HandMadeTable(tmp_path / "t", version=request.param)
    for n in (10, 20, 30):
        made.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=n)
    return PinnedTable.of(made.client())


def files(table: PinnedTable, *numbers: int) -> list[str]:
    return [i.file_name for i in table.active.timeline.completed() if i.requested in map(at, numbers)]


def test_a_batch_is_its_commits(table):
    query = batch_query(table, files(table, 10, 30), EARLIEST, 0, Query())
    assert (query.begin, query.end, query.only) == (None, at(30), {at(10), at(30)})
    query = batch_query(table, files(table, 20), EARLIEST, 7, Query())
    assert at(19) <= query.begin < at(20)
    assert (query.end, query.only) == (at(20), {at(20)})


def test_commits_before_the_start_are_left_out(table):
    after = StartOffset(after=at(20))
    assert batch_query(table, files(table, 10, 20), after, 0, Query()) is None
    assert batch_query(table, files(table, 10, 20), after, 3, Query()) is None
    assert batch_query(table, files(table, 10, 30), after, 0, Query()).only == {at(30)}
    latest = StartOffset(first_batch_after=at(20))
    assert batch_query(table, files(table, 10, 20), latest, 0, Query()) is None
    assert batch_query(table, files(table, 20), latest, 1, Query()).only == {at(20)}
    with pytest.raises(QueryError, match="in the thread of its query"):
        batch_query(table, files(table, 20), latest, None, Query())


def test_commits_that_are_gone(table):
    names = [name.replace(at(20), at(15)) for name in files(table, 20)]
    with pytest.raises(CheckpointError, match=at(15)):
        batch_query(table, names, EARLIEST, 1, Query())


def test_a_first_batch_that_is_repeated_after_later_commits(table):
    """It was planned for an earlier start, which nobody knows any more."""
    latest = StartOffset(first_batch_after=at(30))
    assert batch_query(table, files(table, 10, 20, 30), latest, 0, Query()) is None
    with pytest.raises(CheckpointError, match="is repeated"):
        batch_query(table, files(table, 10, 20), latest, 0, Query())


def test_a_timeline_that_was_written_again(table):
    """After an upgrade all files of the timeline have new names, so that Spark delivers them once more."""
    with pytest.raises(CheckpointError, match="upgrade or downgrade"):
        batch_query(table, files(table, 10, 20, 30), EARLIEST, 4, Query())
