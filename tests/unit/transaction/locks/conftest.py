"""Fixtures of the tests of locks."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.storage import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)
