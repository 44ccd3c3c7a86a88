"""What the files of a table tell a writer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.index.bucket_counts import BucketCounts
from pyhudi.index.bucket_hash import bucket_of
from pyhudi.index.bucket_index import Bucketing
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action
from pyhudi.write.planning.existing_files import LogContents, check_buckets, check_not_bucketed, sample_keys
from tests.tables import HandMadeTable, at

BUCKET = "00000007-63b9-435b-8b8d-18c2684745c2-0"
RANDOM = "1070a7e1-63b9-435b-8b8d-18c2684745c2-0"
ROWS = [{"id": "b", "p": "x"}, {"id": "a", "p": "x"}]


@pytest.mark.parametrize("version", [6, 9])
def test_file_groups_named_by_buckets(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path, version=version)
    assert bucket_evidence(table.client()) is None
    table.write(1, {("x", BUCKET): ROWS, ("y", BUCKET.replace("7", "0")): ROWS})
    table.write(2, {}, operation="DELETE_PARTITION")
    with pytest.raises(UnsupportedTableError, match=r"'t' was written with the bucket index .*00000007-63b9"):
        check_not_bucketed(table.client())
    table.write(3, {("z", RANDOM): ROWS})
    check_not_bucketed(table.client())
    # a commit may have touched a group whose random id happens to look like a bucket's
    table.write(4, {("x", BUCKET): ROWS})
    check_not_bucketed(table.client())


def test_folder_of_the_bucket_index(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path)
    table.write(1, {("x", RANDOM): ROWS})
    folder = tmp_path / ".hoodie/.bucket_index/consistent_hashing_metadata/x"
    folder.mkdir(parents=True)
    (folder / "00000000000000.hashing_meta").write_text("{}")
    with pytest.raises(UnsupportedTableError, match="bucket_index"):
        check_not_bucketed(table.client())


def test_properties_that_name_the_bucket_index(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, properties={"hoodie.index.type": "BUCKET"})
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.index\.type=BUCKET"):
        check_not_bucketed(table.client())


def test_a_table_of_apache_hudi_with_buckets(tmp_path: Path) -> None:
    archive = Path(__file__).parents[3] / "golden/tables/v8_mor_bucket.zip"
    shutil.unpack_archive(archive, tmp_path)
    root = next(path.parent for path in tmp_path.rglob(".hoodie") if path.parent.name != "metadata")
    from pyhudi.table.meta_client import TableMetaClient

    assert "file groups" in (bucket_evidence(TableMetaClient.open(str(root))) or "")


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_another_number_of_buckets_is_not_taken_because_one_key_agrees(tmp_path: Path, extension: str) -> None:
    table = HandMadeTable(tmp_path, extension=extension)
    keys = [f"k{i}" for i in range(60)]
    keys.sort(key=lambda key: bucket_of(key, ["id"], 8) != bucket_of(key, ["id"], 4))  # those that agree come first
    files: dict[int, list[dict[str, str]]] = {}
    for key in keys:
        files.setdefault(bucket_of(key, ["id"], 4), []).append({"id": key, "p": "x"})
    table.write(1, {("x", f"0000000{number}{BUCKET[8:]}"): rows[:9] for number, rows in files.items()})
    client = table.client()
    slices = FileSystemView.load(client).latest_slices()

    def check(buckets: int) -> None:
        check_buckets(client.storage, Bucketing(("id",), BucketCounts(buckets), False), slices, keys=True)

    check(4)
    assert all(bucket_of(rows[0]["id"], ["id"], 8) == number for number, rows in files.items())
    with pytest.raises(ConfigError, match="belongs to bucket"):
        check(8)


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_sample_keys(tmp_path: Path, extension: str) -> None:
    table = HandMadeTable(tmp_path / "table", extension=extension)
    assert sample_keys(table.client()) == ()
    table.write(1, {("x", "f0-0"): []})
    assert sample_keys(table.client()) == ()
    table.write(2, {("y", "f1-0"): ROWS})
    assert sample_keys(table.client()) == ("b", "a"), "files without a footer of Hudi's are read"
    virtual = HandMadeTable(tmp_path / "virtual", meta_columns=False, extension=extension)
    virtual.write(1, {("x", "f0-0"): ROWS})
    assert sample_keys(virtual.client()) == ()


def _after_a_compaction(root: Path, version: int, log: int, done: int) -> bool:
    """Whether a log of a slice whose base file a compaction (planned at 20, completed at 40) has made may hold keys
    that are not in there; the log was written from ``log`` to ``done``."""
    table = HandMadeTable(root, version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("x", RANDOM): ROWS}, action=Action.DELTA_COMMIT)
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT", done=40)
    table.log(log, {("x", RANDOM): ROWS[:1]}, base=20, done=done)
    client = table.client()
    return LogContents.of(client.active_timeline(), FileSystemView.load(client).latest_slices()).new_keys


@pytest.mark.parametrize("version", [8, 9])
def test_log_files_from_beside_a_compaction_may_hold_keys_of_their_own(tmp_path: Path, version: int) -> None:
    assert not _after_a_compaction(tmp_path / "after", version, 50, 51)
    assert _after_a_compaction(tmp_path / "beside", version, 30, 35)
    assert _after_a_compaction(tmp_path / "longer", version, 30, 60)
    assert _after_a_compaction(tmp_path / "before", version, 15, 60)


def test_log_files_of_version_6_name_the_base_file_that_they_belong_to(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, 6, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT")
    active = table.client().active_timeline()
    (name,) = (path.name for path in (tmp_path / "x").glob("*.parquet"))

    def holds(base_file: str, operation: str = "UPSERT") -> bool:
        log = f".{RANDOM}_{at(20)}.log.1_0-0-0"
        stat = {"partitionPath": "x", "fileId": RANDOM, "path": f"x/{log}", "prevCommit": at(20)}
        stat |= {"baseFile": base_file, "logFiles": [log], "logVersion": 1}
        (tmp_path / "x" / log).write_bytes(b"")
        (tmp_path / ".hoodie" / f"{at(30)}.deltacommit").write_bytes(
            CommitMetadata(operation, write_stats([stat])).encode(6, Action.DELTA_COMMIT)
        )
        slices = FileSystemView.load(table.client()).latest_slices()
        return LogContents.of(active.reload(), slices).new_keys

    assert not holds(name)
    assert holds(name.replace(at(20), at(10)))
    assert holds("")
    assert not holds("", "LOG_COMPACT")


def _contents(table: HandMadeTable) -> LogContents:
    client = table.client()
    return LogContents.of(client.active_timeline(), FileSystemView.load(client).latest_slices())


@pytest.mark.parametrize("version", [8, 9])
def test_archived_writes_say_what_is_in_their_log_files(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path, version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("x", RANDOM): ROWS}, action=Action.DELTA_COMMIT)
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT", done=40)
    table.log(50, {("x", RANDOM): ROWS[:1]}, base=20)
    assert _contents(table) == LogContents()
    table.log(60, {}, deletes={("x", RANDOM): ["a"]}, base=20)
    table.write(70, {("y", BUCKET): ROWS})
    assert _contents(table) == LogContents(deletes=True)
    table.archive(10, 20, 50, 60)
    assert _contents(table) == LogContents(deletes=True)
    (tmp_path / ".hoodie/timeline/history/_version_").unlink()
    assert _contents(table) == LogContents(new_keys=True, deletes=True), "what nobody knows of may hold anything"


def test_a_log_file_from_beside_an_archived_compaction(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT", done=40)
    table.log(30, {("x", RANDOM): ROWS[:1]}, base=20, done=35)
    table.write(70, {("y", BUCKET): ROWS})
    assert _contents(table).new_keys
    table.archive(20, 30)
    assert _contents(table).new_keys
