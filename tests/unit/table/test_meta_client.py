from __future__ import annotations

import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from pyhudi.config import Options, options
from pyhudi.config.property_keys import TABLE_CHECKSUM
from pyhudi.errors import (
    CorruptTableError,
    ForeignFilesWarning,
    NotAHudiTableError,
    TableExistsError,
    UnsupportedTableError,
)
from pyhudi.storage import open_storage
from pyhudi.table.config import properties_file
from pyhudi.table.config.properties_file import BACKUP_PATH, PATH
from pyhudi.table.config.properties_text import parse_properties, table_checksum
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_metadata import list_partitions, read_partition_metadata
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed
from tests.golden.expected import TABLES


def config(name: str = "t", version: int = 9) -> TableConfig:
    return TableConfig.for_new_table(Options.parse({"hoodie.table.name": name, "hoodie.write.table.version": version}))


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties_file, "_WAITS", (0.0, 0.0))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_create_and_open(tmp_path: Path, version: int) -> None:
    made = TableMetaClient.create(tmp_path / "t", config(version=version), {"x": "1"})
    opened = TableMetaClient.open(str(tmp_path / "t"))
    assert opened.config == made.config
    assert opened.storage.root == f"file://{tmp_path}/t"
    assert made.options["x"] == "1"
    assert len(opened.active_timeline().timeline.instants) == 0
    assert opened.active_timeline().layout == opened.config.layout
    assert repr(opened) == f"TableMetaClient(file://{tmp_path}/t, TableConfig('t', version {version}, COPY_ON_WRITE))"


def test_an_object_store_gets_the_properties_only() -> None:
    location = f"memory://{uuid4()}/tables/t"
    made = TableMetaClient.create(location, config())
    assert made.storage.list(recursive=True)["path"].to_pylist() == [PATH]
    assert TableMetaClient.open(location).config == made.config


def test_clients_pickle(tmp_path: Path) -> None:
    made = TableMetaClient.create(tmp_path / "t", config())
    again = pickle.loads(pickle.dumps(made))
    assert again.config == made.config
    assert again.reload().config == made.config


def test_reload_and_updates(tmp_path: Path) -> None:
    client = TableMetaClient.create(tmp_path / "t", config())
    changed = client.config.updated(client.storage, set={"hoodie.table.metadata.partitions": "files"})
    assert changed.metadata_partitions == ("files",)
    assert client.config.metadata_partitions == ()
    assert client.reload().config == changed == client.with_config(changed).config
    cleared = changed.updated(client.storage, remove=("hoodie.table.metadata.partitions",))
    assert cleared == client.config
    # an update starts from what is stored now, not from what was loaded then
    changed.updated(client.storage, set={"a": "1"})
    assert "hoodie.table.metadata.partitions" not in client.reload().config.properties


def test_a_table_that_exists(tmp_path: Path) -> None:
    TableMetaClient.create(tmp_path / "t", config("first"))
    with pytest.raises(TableExistsError, match="open it, or choose another path"):
        TableMetaClient.create(tmp_path / "t", config("second"))
    assert TableMetaClient.open(tmp_path / "t").config.name == "first"


@pytest.mark.parametrize("name", ["part-0.parquet", "p=1/part-0.parquet"])
def test_a_folder_with_other_files(tmp_path: Path, name: str, recwarn: pytest.WarningsRecorder) -> None:
    for hidden in (".part-0.crc", "_SUCCESS"):
        (tmp_path / hidden).touch()
    TableMetaClient.create(tmp_path, config("first"))
    assert not recwarn.list
    other = tmp_path / "other" / name
    other.parent.mkdir(parents=True)
    other.touch()
    with pytest.warns(ForeignFilesWarning, match=f"such as '{name.split('/')[0]}'.*bootstrap_table"):
        TableMetaClient.create(tmp_path / "other", config("second"))


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_has_lost_its_properties(tmp_path: Path, version: int) -> None:
    layout = config(version=version).layout
    TableMetaClient.create(tmp_path, config(version=version)).active_timeline().create_requested(
        "commit", "20240101000000000"
    )
    assert list((tmp_path / layout.folder).glob("*.requested"))
    (tmp_path / ".hoodie/hoodie.properties").unlink()
    for other in (6, 9):
        with pytest.raises(CorruptTableError, match=r"was lost; recreate the file with pyhudi\.overwrite_properties"):
            TableMetaClient.create(tmp_path, config(version=other))
    assert not (tmp_path / ".hoodie/hoodie.properties").exists()


def test_racing_creators(tmp_path: Path) -> None:
    def create(number: int) -> str | None:
        try:
            return TableMetaClient.create(tmp_path / "t", config(f"t{number}")).config.name
        except TableExistsError:
            return None

    with ThreadPoolExecutor(8) as pool:
        won = [name for name in pool.map(create, range(8)) if name is not None]
    assert won == [TableMetaClient.open(tmp_path / "t").config.name]


def test_a_creator_that_dies_leaves_nothing_or_a_table(tmp_path: Path) -> None:
    count = FaultyStorage(open_storage(tmp_path / "count"), [])
    TableMetaClient.create(count, config())
    for number in range(1, sum(name in WRITES for name, _ in count.operations) + 1):
        for when in ("before", "after"):
            folder = tmp_path / f"{number}{when}"
            faulty = FaultyStorage(open_storage(folder), [Fault("writes", number, when, Killed)])  # type: ignore[arg-type]
            with pytest.raises(Killed):
                TableMetaClient.create(faulty, config())
            try:
                assert TableMetaClient.open(folder).config == config()
            except NotAHudiTableError:
                assert TableMetaClient.create(folder, config("again")).config.name == "again"


class TestOpenErrors:
    @pytest.mark.parametrize("make", [lambda _: None, Path.mkdir, lambda p: (p / ".hoodie").mkdir(parents=True)])
    def test_no_table(self, tmp_path: Path, make: object) -> None:
        make(tmp_path / "t")  # type: ignore[operator]
        with pytest.raises(
            NotAHudiTableError, match=r"no Hudi table at file://.*; check the path, or create the table"
        ):
            TableMetaClient.open(tmp_path / "t")

    def test_broken_properties(self, tmp_path: Path) -> None:
        client = TableMetaClient.create(tmp_path / "t", config())
        client.storage.write(PATH, client.storage.read(PATH)[:100])
        with pytest.raises(CorruptTableError, match="truncated"):
            TableMetaClient.open(tmp_path / "t")

    def test_leftover_backup(self, tmp_path: Path) -> None:
        client = TableMetaClient.create(tmp_path / "t", config())
        client.storage.write(BACKUP_PATH, client.storage.read(PATH))
        client.storage.delete(PATH)
        assert TableMetaClient.open(tmp_path / "t").config == client.config

    def test_a_version_of_the_future(self, tmp_path: Path) -> None:
        client = TableMetaClient.create(tmp_path / "t", config())
        client.storage.write(PATH, client.storage.read(PATH).replace(b"table.version=9", b"table.version=10"))
        with pytest.raises(UnsupportedTableError, match="version 10"):
            TableMetaClient.open(tmp_path / "t")
        with pytest.raises(UnsupportedTableError, match="version 10"):
            client.reload()

    def test_creating_what_cannot_be_served(self, tmp_path: Path) -> None:
        odd = {**config().properties, "hoodie.table.version": "7"}
        with pytest.raises(UnsupportedTableError, match="version 7"):
            TableMetaClient.create(tmp_path / "t", TableConfig(odd))
        assert not (tmp_path / "t").exists()


def test_a_golden_table_lives_on(tmp_path: Path) -> None:
    with zipfile.ZipFile(TABLES / "v9_cow_complex_keys.zip") as archive:
        archive.extractall(tmp_path)
    client = TableMetaClient.open(tmp_path / "v9_cow_complex_keys")
    assert len(client.active_timeline().timeline.completed().instants) == 3
    partitions = list_partitions(client.storage)
    assert "a%3Db%25c/__HIVE_DEFAULT_PARTITION__" in partitions
    assert all(not partition.startswith(".hoodie") for partition in partitions)
    assert {found.depth for p in partitions if (found := read_partition_metadata(client.storage, p))} == {2}
    assert TableMetaClient.open(tmp_path / "v9_cow_complex_keys" / ".hoodie" / "metadata").config.is_metadata_table
    changed = client.config.updated(client.storage, set={"hoodie.table.metadata.partitions": ""})
    assert changed.metadata_partitions == ()
    assert changed.properties.keys() == client.config.properties.keys()
    stored = parse_properties(client.storage.read(PATH))
    assert stored[TABLE_CHECKSUM] == table_checksum(stored)


def test_create_schema_survives_a_rewrite(tmp_path: Path) -> None:
    schema = '{"type":"record","name":"t","doc":"é: #!= \\\\ \\u20ac","fields":[]}'
    client = TableMetaClient.create(tmp_path / "t", config())
    client.config.updated(client.storage, set={options.CREATE_SCHEMA.key: schema})
    assert client.reload().config.create_schema == schema
    assert b'{"type"\\:"record"' in client.storage.read(PATH)
