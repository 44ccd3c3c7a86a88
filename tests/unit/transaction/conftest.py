from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.storage import Storage, open_storage
from tests.unit.transaction.tables import make_table


@pytest.fixture(params=[6, 8, 9], ids=["v6", "v8", "v9"])
def version(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version


@pytest.fixture
def storage(tmp_path: Path, version: int) -> Storage:
    storage = open_storage(tmp_path)
    make_table(storage, version)
    return storage
