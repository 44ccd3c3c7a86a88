"""What commits say of the micro-batches of streams."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CheckpointError
from pyhudi.storage import open_storage
from pyhudi.streaming.checkpoint import CHECKPOINT_KEY, SinkCheckpoint, SinkHistory, check_continuity
from pyhudi.table.meta_client import TableMetaClient
from tests.tables import HandMadeTable, at


@given(st.text(min_size=1), st.integers(0, 2**63 - 1), st.none() | st.uuids().map(str))
def test_a_commit_gives_back_what_it_was_told(identifier, batch, query):
    told = SinkCheckpoint(identifier, batch, query)
    assert SinkCheckpoint.from_commit(told.metadata(), identifier) == told
    assert SinkCheckpoint.from_commit(told.metadata(), identifier + "x") is None


def test_the_form_is_apache_hudis():
    # as CommitUtils.getCheckpointValueAsString writes it: identifier and number as texts
    assert SinkCheckpoint("default_single_writer", 3).metadata() == {CHECKPOINT_KEY: '{"default_single_writer":"3"}'}


@pytest.mark.parametrize("text", ["no json", "[1]", '{"a":"x"}', '{"a":-1}'])
def test_a_checkpoint_that_cannot_be_understood(text):
    with pytest.raises(CheckpointError):
        SinkCheckpoint.from_commit({CHECKPOINT_KEY: text}, "a")


def test_a_batch_is_there_or_not():
    last = SinkCheckpoint("a", 3, "q1")
    assert last.covers(SinkCheckpoint("a", 3, "q1"))
    assert not last.covers(SinkCheckpoint("a", 4, "q1"))
    assert SinkCheckpoint("a", 3).covers(SinkCheckpoint("a", 2, "q2")), "Apache Hudi does not tell the query"
    with pytest.raises(CheckpointError, match="another streaming query"):
        last.covers(SinkCheckpoint("a", 0, "q2"))
    check_continuity(None, SinkCheckpoint("a", 0))
    check_continuity(last, SinkCheckpoint("a", 4))
    with pytest.raises(CheckpointError, match="another table"):
        check_continuity(None, SinkCheckpoint("a", 1))


@pytest.mark.parametrize(("batch", "missing"), [(5, "batch 4 are"), (9, "batch 4 to 8 are")])
def test_batches_that_were_rolled_back_are_missing(batch, missing):
    with pytest.raises(CheckpointError, match=f"{missing} missing.*ignore.failed.batch"):
        check_continuity(SinkCheckpoint("a", 3, "q1"), SinkCheckpoint("a", batch, "q1"))


@pytest.mark.parametrize("version", [6, 9])
def test_the_newest_commit_of_an_identifier_counts(tmp_path, version):
    table = HandMadeTable(tmp_path / "t", version=version)
    storage = open_storage(str(tmp_path / "t"))
    assert SinkHistory.load(open_storage(str(tmp_path / "nothing")), "a").last is None
    for n, extra in enumerate([{"a": "0"}, {"b": "7"}, {"a": "1"}, {}, {"b": "8"}]):
        rows = {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}
        table.write(10 + n, rows, done=20 + n, extra={CHECKPOINT_KEY: json.dumps(extra)} if extra else {})
    assert SinkHistory.load(storage, "a").last == SinkCheckpoint("a", 1)
    assert SinkHistory.load(storage, "b").last == SinkCheckpoint("b", 8)
    assert SinkHistory.load(storage, "c").last is None


def test_a_batch_that_another_driver_commits_meanwhile(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    storage = open_storage(str(tmp_path / "t"))

    def commit(n, batch, query="q1"):
        rows = {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}
        table.write(n, rows, done=n + 1, extra=dict(SinkCheckpoint("a", batch, query).metadata()))

    commit(10, 4)
    history = SinkHistory.load(storage, "a")
    commit(20, 5)
    now = TableMetaClient.open(storage).active_timeline()
    found = history.later_commit(SinkCheckpoint("a", 5, "q1"), now)
    assert found is not None
    assert found.requested == at(20)
    assert history.later_commit(SinkCheckpoint("a", 6, "q1"), now) is None
    assert history.later_commit(SinkCheckpoint("b", 5, "q1"), now) is None
    assert SinkHistory.load(storage, "a").later_commit(SinkCheckpoint("a", 5, "q1"), now) is None
    with pytest.raises(CheckpointError, match="another streaming query"):
        history.later_commit(SinkCheckpoint("a", 5, "q2"), now)


def test_a_batch_of_another_driver_that_was_archived_meanwhile(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    storage = open_storage(str(tmp_path / "t"))
    empty = SinkHistory.load(open_storage(str(tmp_path / "nothing")), "a")

    def commit(n, batch=None):
        rows = {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}
        extra = {} if batch is None else dict(SinkCheckpoint("a", batch, "q1").metadata())
        table.write(n, rows, done=n + 1, extra=extra)

    commit(10, 4)
    history = SinkHistory.load(storage, "a")
    commit(20, 5)
    commit(30)
    table.archive(10, 20)
    commit(40)
    now = TableMetaClient.open(storage).active_timeline()
    for earlier in (history, empty):
        found = earlier.later_commit(SinkCheckpoint("a", 5, "q1"), now)
        assert found is not None
        assert found.requested == at(20)
        assert earlier.later_commit(SinkCheckpoint("a", 6, "q1"), now) is None
    assert history.later_commit(SinkCheckpoint("a", 4, "q1"), now) is not None
    assert SinkHistory.load(storage, "a").later_commit(SinkCheckpoint("a", 5, "q1"), now) is None
