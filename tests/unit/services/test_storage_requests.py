"""Operations on the storage by a commit and by the services after it, each of which takes an object store tens of
milliseconds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.clustering.clustering_runner import ThreadClusteringRunner
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.storage import open_storage
from tests.fault_injection import FaultyStorage
from tests.unit.services.merge_on_read_table import FAST, MorTable, row

OPTIONS = {
    **FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "100",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "100",
    "hoodie.clean.commits.retained": "50",
    "hoodie.keep.min.commits": "60",
    "hoodie.keep.max.commits": "70",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "100",
}
LISTING, PROPERTIES = ("list", ".hoodie/timeline"), ("read", ".hoodie/hoodie.properties")


@pytest.mark.parametrize(("version", "most"), [(6, 43), (8, 39), (9, 39)])
def test_a_commit_and_services_that_are_not_due(tmp_path: Path, version: int, most: int) -> None:
    """They do not depend on the number of commits in the active timeline."""
    storage = FaultyStorage(open_storage(tmp_path / "t", {"pyhudi.storage.fsync": "none"}))
    mor = MorTable(tmp_path / "t", version, options=OPTIONS, storage=storage)
    mor.load([row("a0", "a", 1, "x"), row("b0", "b", 1, "x")])
    counts = []
    for number in range(2, 6):
        storage.operations.clear()
        mor.delta([row("a0", "a", number, "y")])
        _run_services(storage)
        counts.append(Counter(storage.operations))
    totals = [count.total() for count in counts]
    assert totals[1] == totals[-1] <= most, totals
    if version >= 8:
        # opened twice, and begun, published and served once; begun, inflight, published (twice), and served
        assert counts[-1][PROPERTIES] == 5, counts[-1]
        assert counts[-1][LISTING] == 5, counts[-1]
    assert not [operation for operation in counts[-1] if operation[0] == "read" and "commit" in operation[1]][1:]


def _run_services(storage: FaultyStorage) -> None:
    services = PostCommitServices(storage, Options.parse(OPTIONS))
    assert not services.clean_and_archive(LOCAL)
    assert not services.compact(ThreadCompactionRunner())
    assert not services.cluster(ThreadClusteringRunner())


def test_services_that_are_not_due(tmp_path: Path) -> None:
    storage = FaultyStorage(open_storage(tmp_path / "t", {"pyhudi.storage.fsync": "none"}))
    MorTable(tmp_path / "t", options=OPTIONS, storage=storage).load([row("a0", "a", 1, "x")], {"a": "f-0"})
    storage.operations.clear()
    _run_services(storage)
    assert storage.operations == [PROPERTIES, LISTING]
