"""The metadata table's timeline gets shorter after the table's own, and says the same."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.maintenance.metadata_archival import archivable_instants, archive_metadata_timeline
from pyhudi.metadata.metadata_layout import load_metadata_timeline, metadata_layout
from pyhudi.metadata.reader.metadata_timeline import unknown_writes
from pyhudi.services.indexing.index_builder import lock_table
from pyhudi.storage import Storage
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from tests.archival import archive_instants
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

OPTIONS = {
    **FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "5",
    "hoodie.keep.min.commits": "6",
    "hoodie.keep.max.commits": "9",
}


def table(folder: Path, version: int = 9, storage: Storage | None = None) -> MorTable:
    return MorTable(folder, version, options=OPTIONS, storage=storage)


def grow(mor: MorTable, start: int, stop: int) -> None:
    for n in range(start, stop):
        mor.delta([row(f"a{n % 3}", "a", n, f"v{n}")])


def archive_table(mor: MorTable, count: int) -> None:
    """Archive the oldest writes of the table itself, as its own archival would."""
    active = mor.client.active_timeline()
    assert mor.storage is not None
    archive_instants(active, list(active.timeline.completed())[:count])


def check(mor: MorTable, last: int) -> None:
    CACHE.clear()
    assert mor.rows()["a" + str(last % 3)]["v"] == f"v{last}"
    found = mor.table.validate_metadata()
    assert not set(found["problem"].to_pylist()) - {"of another size"}  # which these commits do not tell


FIRST_BUILD = "00000000000000010"
"""In tables of version 6 older than all writes, so that it may be archived before them."""


def archived(mor: MorTable) -> list[str]:
    assert mor.storage is not None
    found: list[str] = read_archived_timeline(mor.storage, metadata_layout(mor.version))["requested"].to_pylist()
    return [instant for instant in found if instant != FIRST_BUILD]


@pytest.fixture(scope="module", params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, version: int) -> Path:
    """A table with 20 writes, none of them archived."""
    mor = table(tmp_path_factory.mktemp("grown") / "t", version)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    grow(mor, 1, 20)
    return mor.root


@pytest.fixture
def mor(grown: Path, tmp_path: Path, version: int) -> MorTable:
    return table(Path(shutil.copytree(grown, tmp_path / "t")), version)


def test_what_is_active_on_the_table_stays(mor: MorTable) -> None:
    assert not archived(mor)
    archive_table(mor, 12)
    first = mor.client.active_timeline().timeline.first
    assert first is not None
    grow(mor, 20, 26)
    gone = archived(mor)
    assert gone
    assert max(gone) < first.requested
    check(mor, 25)
    assert mor.storage is not None
    left = load_metadata_timeline(mor.storage, mor.version).timeline
    assert not set(gone) & {i.requested for i in left}
    assert not left.pending()
    assert {i.requested for i in mor.client.active_timeline().timeline.writes()} <= {i.requested for i in left}
    for n in range(26, 42):
        grow(mor, n, n + 1)
        if n % 8 == 0:
            archive_table(mor, 8)
    check(mor, 41)
    assert len(archived(mor)) >= len(gone) + 10
    kinds = read_archived_timeline(mor.storage, metadata_layout(mor.version))["action"].to_pylist()
    assert {Action.DELTA_COMMIT, Action.COMMIT, Action.CLEAN} >= set(kinds) >= {Action.DELTA_COMMIT, Action.COMMIT}


def test_a_savepoint_that_archival_has_passed_does_not_stop_it(mor: MorTable) -> None:
    saved = mor.client.active_timeline().timeline.completed().writes().instants[3].requested
    before = mor.table.scan(as_of=saved, columns=["id", "v"]).to_arrow().to_pylist()
    mor.table.services.savepoint(saved)
    beyond = OPTIONS | {
        "hoodie.archive.beyond.savepoint": "true",
        "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
    }
    mor.table.services.archive(beyond | {"hoodie.clean.commits.retained": "1"})
    first, second = mor.client.active_timeline().timeline.completed().writes().instants[:2]
    assert first.requested == saved
    grow(mor, 20, 26)
    assert saved not in archived(mor)
    mor.options = beyond
    grow(mor, 26, 32)
    assert saved in archived(mor)
    assert max(archived(mor)) < second.requested
    check(mor, 31)
    client = mor.client
    active = client.active_timeline()
    assert active.timeline.find(saved) is not None
    assert not unknown_writes(load_metadata_timeline(client.storage, mor.version), active)
    assert mor.table.scan(as_of=saved, columns=["id", "v"]).to_arrow().to_pylist() == before
    mor.table.services.delete_savepoint(saved)
    grow(mor, 32, 33)
    check(mor, 32)


def test_options_of_apache_hudi(mor: MorTable) -> None:
    archive_table(mor, 12)
    mor.options = OPTIONS | {"hoodie.archive.automatic": "false"}
    grow(mor, 20, 26)
    assert not archived(mor)
    mor.options = OPTIONS | {"hoodie.keep.min.commits": "100", "hoodie.keep.max.commits": "110"}
    grow(mor, 26, 32)
    assert not archived(mor)


def test_dying_while_archiving(mor: MorTable) -> None:
    """Nothing is lost, whoever comes next goes on, and archives what is left."""
    archive_table(mor, 5)

    def act(storage: Storage) -> None:
        client = table(mor.root.with_name("dead"), mor.version, storage).client
        with lock_table(client, Options.parse(OPTIONS)) as locked:
            archive_metadata_timeline(locked)

    seen = set()
    for storage in deaths(mor.root, act):
        left = table(mor.root.with_name("dead"), mor.version, storage)
        check(left, 19)
        begun = set(archived(left))
        act(storage)
        gone = archived(left)
        assert begun <= set(gone)
        assert len(set(gone)) == len(gone) > 5  # each once
        own = load_metadata_timeline(storage, mor.version).timeline
        assert not own.pending()
        assert not set(gone) & {i.requested for i in own}
        check(left, 19)
        seen.add(bool(begun))
    assert seen == {True, False}


def test_compactions_that_were_archived_before_a_build_that_stays(mor: MorTable) -> None:
    """Earlier versions of pyhudi archived in this order. The files of these compactions count, and later archival,
    which takes the build, too, leaves a timeline that all readers understand."""
    assert mor.storage is not None
    compaction = load_metadata_timeline(mor.storage, mor.version).timeline.completed().of_actions(Action.COMMIT).last
    assert compaction is not None
    archive_table(mor, len(mor.client.active_timeline().timeline.completed().up_to(compaction.requested)) - 1)
    grow(mor, 20, 21)  # not enough for another compaction
    archive_table(mor, 1)
    active = load_metadata_timeline(mor.storage, mor.version)
    build = active.timeline.first
    assert build is not None
    assert active.timeline.completed().of_actions(Action.COMMIT).last == compaction
    archive_instants(active, [i for i in active.timeline.up_to(compaction.requested) if i != build])
    check(mor, 20)
    grow(mor, 21, 40)
    archive_table(mor, 18)
    grow(mor, 40, 50)
    check(mor, 49)
    left = load_metadata_timeline(mor.storage, mor.version).timeline
    assert build not in left.instants


def test_an_index_that_is_built_between_compactions_holds_archival_up() -> None:
    """A reader that finds its build first on the timeline would not take later instants for archived."""

    def instant(number: int, action: str = Action.DELTA_COMMIT) -> Instant:
        time = f"202601010000{number:02}000"
        return Instant(time, action, State.COMPLETED, time, "")

    commits = [instant(n, Action.COMMIT if n % 10 == 0 else Action.DELTA_COMMIT) for n in range(1, 31)]
    archived = archivable_instants(Timeline(commits), Timeline([]), min_commits=4, max_commits=6)
    assert [i.requested for i in archived] == [i.requested for i in commits[: len(archived)]]
    assert len(archived) > 10
    build = replace(commits[0], requested="00000000000000002", completion=f"{commits[27].requested[:-3]}500")
    assert archivable_instants(Timeline([build, *commits]), Timeline([]), min_commits=4, max_commits=6) == []
    earlier = replace(build, completion=f"{commits[1].requested[:-3]}500")
    assert archivable_instants(Timeline([earlier, *commits]), Timeline([]), min_commits=4, max_commits=6) == [
        earlier,
        *archived,
    ]
