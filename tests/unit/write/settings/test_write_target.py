"""Targets of writes that create a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.errors import ConfigError
from pyhudi.storage import open_storage
from pyhudi.write.settings.write_target import WriteTarget

ZOOKEEPER = "hoodie.write.lock.zookeeper."
SEVERAL = {"hoodie.table.name": "t", "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


@pytest.mark.parametrize("provider", [{}, {"hoodie.write.lock.provider": "ZookeeperBasedLockProvider"}])
def test_options_of_the_lock_are_checked_before_a_table_is_created(tmp_path: Path, provider: dict[str, str]) -> None:
    pytest.importorskip("kazoo")
    given = {**SEVERAL, **provider, f"{ZOOKEEPER}url": "zookeeper"}
    with pytest.raises(ConfigError, match=rf"{ZOOKEEPER}base_path"):
        WriteTarget.from_options(open_storage(tmp_path), None, Options.parse(given))
    complete = Options.parse({**given, f"{ZOOKEEPER}base_path": "/hudi"})
    assert WriteTarget.from_options(open_storage(tmp_path), None, complete).config.name == "t"
