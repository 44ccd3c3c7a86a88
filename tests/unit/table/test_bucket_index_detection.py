"""Tables that were written with the bucket index, as their files and properties show."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyhudi.errors import UnsupportedTableError
from pyhudi.table.bucket_index_detection import bucket_evidence, check_not_bucketed
from tests.tables import HandMadeTable

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
    archive = Path(__file__).parents[2] / "golden/tables/v8_mor_bucket.zip"
    shutil.unpack_archive(archive, tmp_path)
    root = next(path.parent for path in tmp_path.rglob(".hoodie") if path.parent.name != "metadata")
    from pyhudi.table.meta_client import TableMetaClient

    assert "file groups" in (bucket_evidence(TableMetaClient.open(str(root))) or "")
