"""Rolling extra metadata: what commits take over from earlier commits and cleans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyhudi.storage import Storage
from pyhudi.transaction.commit_outcome import Committed
from tests.unit.transaction.tables import MULTI_WRITER, SCHEMA, Write, active

ROLLING = MULTI_WRITER | {"hoodie.write.rolling.metadata.keys": "offset, job"}


def begin(storage: Storage, options: dict[str, str] | None = None):
    write = Write(options=ROLLING | (options or {}))
    tx = write.begin(storage)
    return tx, write.write_files(tx)


def publish(begun, extra: dict[str, str]) -> dict[str, str]:
    """Commit with extra metadata, and return those that are stored, without the schema."""
    tx, metadata = begun
    outcome = tx.commit(replace(metadata, extra={**metadata.extra, **extra}))
    assert isinstance(outcome, Committed)
    stored = dict(active(tx.storage).commit_metadata(outcome.instant).extra)
    assert stored.pop("schema") == SCHEMA
    return stored


def commit(storage: Storage, extra: dict[str, str] | None = None, **options: str) -> dict[str, str]:
    return publish(begin(storage, {f"hoodie.write.rolling.metadata.{k}": v for k, v in options.items()}), extra or {})


def test_the_newest_values_are_taken_over(storage: Storage):
    assert commit(storage) == {}
    assert commit(storage, {"offset": "1", "other": "x"}) == {"offset": "1", "other": "x"}
    assert commit(storage, {"job": "a"}) == {"offset": "1", "job": "a"}
    assert commit(storage, {"offset": "2", "job": ""}) == {"offset": "2", "job": "a"}
    assert commit(storage) == {"offset": "2", "job": "a"}
    assert commit(storage, {"own": "y"}, keys="") == {"own": "y"}


def test_the_write_that_commits_last_tells(storage: Storage, version: int):
    """Version 6 has no completion times: the write that began last tells there."""
    first, second = begin(storage), begin(storage)
    assert publish(second, {"offset": "2"}) == {"offset": "2"}
    assert publish(first, {"offset": "1"}) == {"offset": "1"}
    assert commit(storage) == {"offset": "2" if version == 6 else "1"}


@pytest.mark.parametrize(("lookback", "found"), [("2", {"offset": "1"}), ("1", {}), ("0", {})])
def test_lookback(storage: Storage, lookback: str, found: dict[str, str]):
    commit(storage, {"offset": "1"})
    commit(storage, keys="")
    rolled = commit(storage, **{"timeline.lookback.commits": lookback})
    assert rolled == found
