"""The cache of merged log rows: what it remembers, and what it removes when it is full."""

from __future__ import annotations

import shutil

import pytest

from pyhudi.spark.read.merge_on_read import merged_log_cache
from pyhudi.spark.read.merge_on_read.merged_log_cache import CachedLogs, MergedLogCache
from pyhudi.storage import open_storage

GROUP = ("file:///t", "p", "f1")


@pytest.fixture
def now(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(merged_log_cache.time, "monotonic", lambda: clock[0])
    return clock


def logs(storage, name: str) -> CachedLogs:
    storage.create(f"{name}-rows", b"x" * 60)
    storage.create(f"{name}-replaced", b"x" * 40)
    return CachedLogs(f"{name}-rows", 60, f"{name}-replaced", 40)


def test_slices_are_repeated_when_all_were_asked_about_before(tmp_path):
    cache = MergedLogCache(open_storage(tmp_path), 100)
    assert not cache.is_repeated(["a", "b"])
    assert not cache.is_repeated(["b", "c"])
    assert cache.is_repeated(["a", "b", "c"])


def test_the_number_of_remembered_slices_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(merged_log_cache, "_MAX_REQUESTED", 2)
    cache = MergedLogCache(open_storage(tmp_path), 100)
    cache.is_repeated(["a"])
    cache.is_repeated(["b", "c"])
    assert not cache.is_repeated(["a"])
    assert cache.is_repeated(["a", "c"])


def test_a_full_cache_removes_older_snapshots_that_are_not_in_use(tmp_path, now):
    storage = open_storage(tmp_path)
    cache = MergedLogCache(storage, 150)
    cache.add("old", GROUP, logs(storage, "old"))
    assert cache.has_room()
    now[0] = 10.0
    cache.add("new", GROUP, logs(storage, "new"))
    assert not cache.has_room()  # a DataFrame may still read the old snapshot
    now[0] = 3601.0
    assert cache.has_room()
    assert set(cache.find(["old", "new"])) == {"new"}
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["new-replaced", "new-rows"]


def test_a_full_cache_keeps_the_latest_snapshot(tmp_path, now):
    storage = open_storage(tmp_path)
    cache = MergedLogCache(storage, 150)
    for name in ("one", "two"):
        cache.add(name, (*GROUP[:2], name), logs(storage, name))
    now[0] = 10_000.0
    assert not cache.has_room()
    assert "one" in cache.find(["one"])


def test_removed_files_are_forgotten(tmp_path):
    storage = open_storage(tmp_path / "own")
    cache = MergedLogCache(storage, 1000)
    for name in ("one", "two"):
        cache.add(name, (*GROUP[:2], name), logs(storage, name))
    (tmp_path / "own" / "one-replaced").unlink()
    assert set(cache.find(["one", "two"])) == {"two"}
    shutil.rmtree(tmp_path / "own")
    assert not cache.find(["one", "two"])
    cache.add("new", GROUP, logs(storage, "new"))
    assert set(cache.find(["new", "two"])) == {"new"}


def test_remove_all(tmp_path):
    storage = open_storage(tmp_path / "own")
    cache = MergedLogCache(storage, 150)
    cache.add("one", GROUP, logs(storage, "one"))
    cache.remove_all()
    cache.remove_all()
    assert not (tmp_path / "own").exists()
    assert not cache.find(["one"])
