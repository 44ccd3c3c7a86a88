"""Services send requests for files that do not depend on each other at the same time: each request to an object store
takes tens of milliseconds."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.storage import Storage, open_storage
from tests.cases import seldom
from tests.fault_injection import FaultyStorage
from tests.unit.services.merge_on_read_table import FAST, MorTable, row

OPTIONS = {
    **FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.archive.beyond.savepoint": "true",
}
PARTITIONS = {f"p{n}": f"{n:08d}-0000-4000-8000-000000000001-0" for n in range(4)}


class WatchedStorage(FaultyStorage):
    """A slow storage that tells the largest number of operations of a name that were in progress at the same time."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, latency=0.02)
        self.peaks: Counter[str] = Counter()
        self._now: Counter[str] = Counter()

    @contextlib.contextmanager
    def _operation(self, operation: str, path: str) -> Iterator[None]:
        with self._guard:
            self._now[operation] += 1
            self.peaks[operation] = max(self.peaks[operation], self._now[operation])
        try:
            with super()._operation(operation, path):
                yield
        finally:
            with self._guard:
                self._now[operation] -= 1

    def count(self, *names: str) -> int:
        return sum(name in names for name, _ in self.operations)


@pytest.fixture(scope="module", params=[seldom(6), 9])
def grown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with many base files in each partition, and with savepoints."""
    mor = MorTable(tmp_path_factory.mktemp("grown") / "table", request.param, options=OPTIONS)
    for n in range(10):
        mor.load([row(f"k{i}", p, n, "x") for i, p in enumerate(PARTITIONS)], PARTITIONS)
        if n in (5, 6, 7):
            mor.table.services.savepoint()
    return mor.root


@pytest.fixture
def storage(grown: Path, tmp_path: Path) -> WatchedStorage:
    root = shutil.copytree(grown, tmp_path / "table")
    return WatchedStorage(open_storage(root, {"pyhudi.storage.fsync": "none"}))


def services(storage: Storage) -> Any:
    return HudiTable(storage, Options.parse(OPTIONS)).services  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "act",
    [
        lambda s: s.clean(dry_run=True),
        lambda s: s.savepoints(),
        lambda s: s.delete_orphan_files(dry_run=True),
        lambda s: s.restore(s.savepoints()["instant"].to_pylist()[-1], dry_run=True),
    ],
    ids=["clean", "savepoints", "orphan files", "restore"],
)
def test_instants_are_read_at_the_same_time(storage: WatchedStorage, act: Callable[[Any], object]) -> None:
    act(services(storage))
    assert storage.peaks["read"] > 1, storage.operations


def test_an_archival_deletes_pending_files_together(storage: WatchedStorage) -> None:
    archived = services(storage).archive().instants
    assert len(archived) > 3
    assert storage.peaks["read"] > 1, storage.operations
    assert storage.count("delete", "delete_many") <= len(archived) + 6, storage.operations
