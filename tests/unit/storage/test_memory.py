from __future__ import annotations

import pickle
import sys
from uuid import uuid4

import pytest

from pyhudi.errors import SetupError, StorageError
from pyhudi.storage import Storage, open_storage
from tests.processes import separate_processes
from tests.unit.storage.suite import StorageTests

pytest.importorskip("obstore")


class TestMemoryStorage(StorageTests):
    @pytest.fixture
    def storage(self) -> Storage:
        return open_storage(f"memory://{uuid4()}/some/table")


class TestMemoryStorageWithoutPrefix(StorageTests):
    @pytest.fixture
    def storage(self) -> Storage:
        return open_storage(f"memory://{uuid4()}")


def test_stores_of_one_name_are_one() -> None:
    name = uuid4()
    open_storage(f"memory://{name}/a").write("f", b"1")
    assert open_storage(f"memory://{name}").read("a/f") == b"1"
    assert not open_storage(f"memory://{uuid4()}/a").exists("f")


def _read(data: bytes) -> str:
    try:
        pickle.loads(data).read("f")
    except StorageError as error:
        return str(error)
    return "read"


def test_another_process_is_told() -> None:
    storage = open_storage(f"memory://{uuid4()}/t")
    storage.write("f", b"1")
    with separate_processes().Pool(1) as pool:
        assert "memory of another process" in pool.apply(_read, (pickle.dumps(storage),))


@pytest.mark.parametrize("package", ["obstore", "arro3.core"])
def test_the_missing_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SetupError, match=r"pip install 'pyhudi\[objectstore\]'"):
        open_storage(f"memory://{uuid4()}/t").read("f")
