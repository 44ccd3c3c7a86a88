"""The same on an object store: no folders, no links, conditional puts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import AlreadyExistsError
from pyhudi.storage import Storage, open_storage
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.properties import places
from tests.unit.storage.s3_server import S3Server, running_s3_server
from tests.unit.transaction.tables import (
    MULTI_WRITER,
    OPTIONS,
    Write,
    active,
    add_metadata_table,
    check_clean,
    make_table,
)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture
def storage(s3: S3Server, version: int) -> Storage:
    storage = open_storage(f"s3://{s3.new_bucket()}/table", s3.options)
    make_table(storage, version)
    return storage


def test_commit_failure_and_rollback(storage: Storage):
    add_metadata_table(storage)
    Write(retried="0-0-1").run(storage)
    Write().leave(storage)
    Write().run(storage)
    check_clean(storage)
    assert [i.action for i in active(storage).timeline] == ["commit", "rollback", "commit"]
    assert storage.list(".hoodie/metadata", recursive=True).num_rows == 0


def test_two_writers_announce_the_same_instant(storage: Storage):
    active(storage).create_requested("commit", "20240101000000000")
    with pytest.raises(AlreadyExistsError):
        active(storage).create_requested("commit", "20240101000000000")


def test_requests(storage: Storage):
    """What a begin and a commit cost in round trips, apart from the data files."""
    Write().run(storage)
    watched = FaultyStorage(storage)
    write = Write(())
    tx = write.begin(watched)
    begin = [name for name, _ in watched.operations]
    metadata = write.write_files(tx)
    done = len(watched.operations)
    tx.commit(metadata)
    commit = [name for name, _ in watched.operations[done:]]
    assert len(begin) <= 9, begin  # with the folder of the other layout, listed at the same time as the timeline
    assert len(commit) <= 9, commit  # the last but two: whether somebody has begun to roll it back


def test_copies_of_an_instant_take_two_requests_for_each_file(s3: S3Server, storage: Storage) -> None:
    taken = {}
    for enabled in ("false", "true"):
        pending = Write().leave(storage).instant
        table = HudiTable.for_path(storage.uri(), s3.options)
        with s3.recorded_requests() as requests:
            table.services.rollback(pending, {"hoodie.rollback.instant.backup.enabled": enabled})
        taken[enabled] = requests
    files = storage.list(".hoodie/.rollback_backup")["path"].to_pylist()
    assert len(files) == 2, files
    assert len(taken["true"]) == len(taken["false"]) + 2 * len(files), taken


@pytest.mark.parametrize("version", [6, 9])
def test_dying_on_an_object_store(storage: Storage):
    probe = FaultyStorage(storage)
    Write().run(probe)
    count = sum(name in WRITES for name, _ in probe.operations)
    for nth in places(count):
        with pytest.raises(Killed):
            Write().run(FaultyStorage(storage, [Fault("writes", nth + 1, "after", Killed)]))
        Write().run(storage)
        check_clean(storage)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("options", [OPTIONS, MULTI_WRITER], ids=["one writer", "several"])
def test_answers_that_are_lost(s3: S3Server, storage: Storage, options: dict[str, str]) -> None:
    """Puts take effect, are answered with an error, and are sent again by the client: the write is committed once. With
    several writers the lock is a lease in the storage."""
    with s3.recorded_requests() as requests:
        Write(options=options).run(storage)
    puts = sum(request.startswith("PUT ") for request in requests)
    for nth in places(puts):
        before = len(active(storage).timeline)
        with s3.losing_answers(nth + 1):
            Write(options=options).run(storage)
        assert len(active(storage).timeline) == before + 1
        check_clean(storage)
