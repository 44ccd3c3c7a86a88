"""Writes that one process begins and another one ends."""

from __future__ import annotations

import pickle

import pytest

from pyhudi.errors import ConflictError, TransactionError
from pyhudi.storage import Storage
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.suspended_transaction import ResumableTransaction
from tests.unit.transaction.tables import MULTI_WRITER, OPTIONS, Write, active, check_clean, client, data_files


def begin(storage: Storage, options=OPTIONS) -> ResumableTransaction:
    return ResumableTransaction.begin(client(storage), "commit", "UPSERT", options)


def resumed(state: object, storage: Storage) -> ResumableTransaction:
    """The write in another process, as its state comes there."""
    found = pickle.loads(pickle.dumps(state))
    assert found.storage.root == storage.root
    return ResumableTransaction.resume(found)


def test_another_process_commits(storage: Storage, version: int):  # noqa: ARG001
    Write().run(storage)
    with begin(storage) as tx:
        metadata = Write().write_files(tx)
        state = tx.suspend()
    outcome = resumed(state, storage).commit(metadata)
    assert isinstance(outcome, Committed)
    assert outcome.instant.requested == tx.instant
    # as Spark asks for it whatever went wrong after the publication
    resumed(state, storage).abort()
    check_clean(storage)
    assert [i.action for i in active(storage).timeline] == ["commit", "commit"]


def test_another_process_rolls_back(storage: Storage, version: int):  # noqa: ARG001
    before = data_files(storage)
    with begin(storage) as tx:
        Write().write_files(tx)
        state = tx.suspend()
    resumed(state, storage).abort()
    assert data_files(storage) == before
    resumed(state, storage).abort()
    assert all(instant.is_completed for instant in active(storage).timeline)
    check_clean(storage)


def test_the_next_writer_takes_it_for_dead(storage: Storage, version: int):  # noqa: ARG001
    with begin(storage) as tx:
        metadata = Write().write_files(tx)
        state = tx.suspend()
    Write().run(storage)
    with pytest.raises(ConflictError):
        resumed(state, storage).commit(metadata)
    assert [i.action for i in active(storage).timeline if i.action != "rollback"] == ["commit"]


def test_what_cannot_be_handed_over(storage: Storage, version: int):  # noqa: ARG001
    with begin(storage) as tx, pytest.raises(TransactionError, match="must be inflight"):
        tx.suspend()
    with begin(storage, MULTI_WRITER) as tx:
        tx.to_inflight()
        with pytest.raises(TransactionError, match="without a heartbeat"):
            tx.suspend()
    assert not active(storage).timeline.writes()
