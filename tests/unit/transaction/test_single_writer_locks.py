"""Writers of one process take turns, unless their options are those of several writers."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConflictError, NonRetryableConflictError
from pyhudi.storage import open_storage
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.transaction import single_writer_locks
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.write import conflict_retries
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import ChangeResult, WriteResult
from tests.tables import HandMadeTable

ALONE = Options.parse({})
SEVERAL = Options.parse({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"})
RETRIES = "hoodie.write.num.retries.on.conflict.failures"


def overlapping(path: Path, other: str, opts: Options) -> bool:
    """Whether another thread gets its turn while this one has it."""
    entered = threading.Event()

    def enter() -> None:
        with in_process_writer_lock(open_storage(other), opts):
            entered.set()

    thread = threading.Thread(target=enter)
    with in_process_writer_lock(LocalStorage(path), opts), in_process_writer_lock(LocalStorage(path), opts):
        thread.start()
        found = entered.wait(0.2)
    thread.join()
    assert entered.is_set()
    return found


def test_one_writer_at_a_time_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    assert not overlapping(tmp_path / "t", f"{tmp_path}/t/", ALONE)
    assert not overlapping(tmp_path / "t", f"file://{tmp_path}/link", ALONE)
    assert overlapping(tmp_path / "t", f"{tmp_path}/other", ALONE)
    assert overlapping(tmp_path / "t", f"{tmp_path}/t", SEVERAL)


def test_who_waits_long_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(single_writer_locks, "_NEWS_AFTER", 0.01)
    with caplog.at_level(logging.INFO):
        overlapping(tmp_path, str(tmp_path), ALONE)
    assert "waiting for another thread of this process to write to" in caplog.text
    assert "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL" in caplog.text


def test_threads_that_write_without_options_do_not_roll_back_each_other(tmp_path: Path) -> None:
    HandMadeTable(tmp_path, version=9, schema=pa.schema([("id", pa.string())])).write(10, {("a", "f1"): [{"id": "1"}]})
    table = HudiTable.for_path(str(tmp_path))

    def add(number: int) -> str | None:
        return table.alter_schema().add_column(f"c{number}", pa.int32()).commit().instant

    with ThreadPoolExecutor(4) as pool:
        instants = set(pool.map(add, range(8)))
    assert len(instants - {None}) == 8
    assert {f"c{number}" for number in range(8)} <= set(table.schema.names)
    assert table.history().num_rows == 9, "no write was rolled back"


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_writes_are_retried_as_often_as_the_options_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    monkeypatch.setattr(conflict_retries, "_FIRST_WAIT", 0.0)
    attempts = []

    def write() -> WriteResult:
        attempts.append(1)
        if len(attempts) < 3:
            raise ConflictError("another writer was faster")
        return WriteResult("", "UPSERT", "1")

    opts = Options.parse({RETRIES: allowed})
    if allowed < 2:
        with pytest.raises(ConflictError):
            with_retries(LocalStorage(tmp_path), opts, write)
        assert len(attempts) == allowed + 1
    else:
        assert with_retries(LocalStorage(tmp_path), opts, write).retries == 2
        assert with_retries(LocalStorage(tmp_path), opts, lambda: ChangeResult(write())).retries == 0


def test_a_conflict_that_stays_is_not_tried_again(tmp_path: Path) -> None:
    attempts = []

    def write() -> WriteResult:
        attempts.append(1)
        raise NonRetryableConflictError("a clustering is planned")

    with pytest.raises(ConflictError, match="a clustering is planned"):
        with_retries(LocalStorage(tmp_path), Options.parse({RETRIES: 2}), write)
    assert len(attempts) == 1


def test_rows_from_the_table_before_a_conflict_are_not_written_again(tmp_path: Path) -> None:
    attempts = []

    def write() -> WriteResult:
        attempts.append(1)
        raise ConflictError("another writer was faster")

    opts = Options.parse({RETRIES: 3})
    with pytest.raises(NonRetryableConflictError, match=r"was faster; .* does not apply, .* load the table again"):
        with_retries(LocalStorage(tmp_path), opts, write, lambda: True)
    assert len(attempts) == 1
