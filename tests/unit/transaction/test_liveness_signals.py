"""Signals by which other writers tell a running write from a failed one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.errors import StorageError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.fencing.publication_intent import PublicationIntent
from pyhudi.timeline.heartbeat import HeartbeatPolicy, heartbeat_path
from pyhudi.transaction.liveness_signals import liveness_signals

INSTANT = "20240102030405678"
POLICY = "hoodie.clean.failed.writes.policy"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def test_the_only_writer_of_a_table_leaves_no_signals(storage: Storage) -> None:
    signals = liveness_signals(storage, INSTANT, Options.parse({POLICY: "EAGER"}))
    signals.start()
    signals.check()
    signals.before_publication()
    assert not signals.cleanup_steps()
    assert not storage.list("", recursive=True).num_rows
    signals.abandon()
    signals.stop()


def test_signals_of_one_of_several_writers_last_until_it_ends(storage: Storage) -> None:
    signals = liveness_signals(storage, INSTANT, Options.parse({POLICY: "LAZY"}))
    signals.start()
    signals.check()
    assert not HeartbeatPolicy().is_dead(storage, INSTANT)
    signals.before_publication()
    assert PublicationIntent(storage, INSTANT).is_set()
    for step in signals.cleanup_steps():
        step()
    assert HeartbeatPolicy().is_dead(storage, INSTANT)
    assert not PublicationIntent(storage, INSTANT).is_set()


def test_abandoned_signals_stay_for_whoever_took_over(storage: Storage) -> None:
    signals = liveness_signals(storage, INSTANT, Options.parse({POLICY: "LAZY"}))
    signals.start()
    signals.abandon()
    assert storage.exists(heartbeat_path(INSTANT))


def test_a_heartbeat_that_cannot_be_removed_expires(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: str) -> None:
        raise StorageError(f"{path} cannot be deleted")

    signals = liveness_signals(storage, INSTANT, Options.parse({POLICY: "LAZY"}))
    signals.start()
    monkeypatch.setattr(storage, "delete", refuse)
    with caplog.at_level(logging.WARNING):
        signals.stop()
    assert f"could not remove the heartbeat of {INSTANT}" in caplog.text
