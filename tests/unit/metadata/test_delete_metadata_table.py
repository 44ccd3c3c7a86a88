from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.metadata.delete_metadata_table import delete_metadata_table, has_metadata_table
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.table_config import TableConfig
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.golden.expected import unpack

GOLDEN = ("v6_mor_rollback", "v8_mor_bucket", "v9_cow_complex_keys", "v9_mor_meta_all")
OWN_PROPERTIES = ".hoodie/metadata/.hoodie/hoodie.properties"


@pytest.fixture(params=GOLDEN)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return open_storage(unpack(request.param, tmp_path).path.as_uri(), {"pyhudi.storage.fsync": "none"})


def below(storage: Storage) -> set[str]:
    paths: list[str] = storage.list(".hoodie/metadata", recursive=True)["path"].to_pylist()
    return set(paths)


def rest(storage: Storage) -> dict[str, bytes]:
    """All files that are neither the metadata table's nor the table's properties."""
    paths: list[str] = storage.list("", recursive=True)["path"].to_pylist()
    return {
        path: storage.read(path)
        for path in paths
        if not path.startswith((".hoodie/metadata/", ".hoodie/hoodie.properties"))
    }


def test_it_goes_and_nothing_else_does(storage: Storage):
    config, others = TableConfig.load(storage), rest(storage)
    assert has_metadata_table(config)
    after = delete_metadata_table(storage, config)
    assert after == TableConfig.load(storage)
    assert not has_metadata_table(after)
    assert not below(storage)
    assert not storage.list_dirs(".hoodie/metadata")
    assert rest(storage) == others
    dropped = {key for key in config.properties if key not in after.properties}
    assert dropped <= {"hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"}
    assert {key: config.properties[key] for key in after.properties} == dict(after.properties)


def test_a_table_without_one_is_not_touched(storage: Storage):
    config = delete_metadata_table(storage, TableConfig.load(storage))
    watched = FaultyStorage(storage)
    assert delete_metadata_table(watched, config) is config
    assert [name for name, _ in watched.operations if name in WRITES] == []


def test_partitions_that_are_being_built_count(storage: Storage):
    config = delete_metadata_table(storage, TableConfig.load(storage))
    building = config.updated(storage, set={"hoodie.table.metadata.partitions.inflight": "record_index"})
    assert has_metadata_table(building)
    assert not has_metadata_table(delete_metadata_table(storage, building))


def test_dying_in_between(storage: Storage, tmp_path: Path):
    """First the property, whole; then files, and the metadata table's own properties last; the next call ends it."""
    original = {path: storage.read(path) for path in storage.list("", recursive=True)["path"].to_pylist()}
    nth = 0
    while True:
        nth += 1
        copy = open_storage(tmp_path / f"copy-{nth}", {"pyhudi.storage.fsync": "none"})
        for path, data in original.items():
            copy.write(path, data)
        before = below(copy)
        try:
            delete_metadata_table(FaultyStorage(copy, [Fault("writes", nth, "after", Killed)]), TableConfig.load(copy))
        except Killed:
            died = True
        else:
            died = False
        config = TableConfig.load(copy)
        if has_metadata_table(config):
            assert below(copy) == before
        if below(copy) not in (before, set()):
            assert OWN_PROPERTIES in below(copy)
        assert not has_metadata_table(delete_metadata_table(copy, config))
        assert not below(copy)
        if not died:
            break
    assert nth > 5
