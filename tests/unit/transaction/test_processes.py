"""Writers in several processes at once, with and without a lock file in the table."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from pyhudi.storage import open_storage
from pyhudi.transaction.commit_outcome import Committed
from tests.processes import run_together, separate_processes
from tests.unit.transaction.tables import MULTI_WRITER, Write, active, check_clean, make_table

WRITERS, WRITES = 3, 4
PROVIDERS = ("", "FileSystemBasedLockProvider")


def _work(uri: str, provider: str, number: int, same_group: bool) -> None:
    options = MULTI_WRITER | ({"hoodie.write.lock.provider": provider} if provider else {})
    partition = "all" if same_group else f"p{number}"
    write = Write((partition,), options=options, file_ids={partition: f"F-{partition}"})
    storage = open_storage(uri, {"pyhudi.storage.fsync": "none"})
    committed = 0
    while committed < WRITES:
        tx = write.begin(storage)
        committed += isinstance(tx.commit(write.write_files(tx)), Committed)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("same_group", [False, True], ids=["apart", "in each other's way"])
def test_several_processes(tmp_path: Path, provider: str, same_group: bool):
    storage = open_storage(tmp_path)
    make_table(storage, 9)
    context = separate_processes()
    arguments = [(tmp_path.as_uri(), provider, number, same_group) for number in range(WRITERS)]
    processes = [context.Process(target=_work, args=args) for args in arguments]
    run_together(processes)
    check_clean(storage)
    writes = active(storage).timeline.writes()
    assert len(writes) == WRITERS * WRITES
    if not same_group:
        partitions = Counter(active(storage).commit_metadata(i).stats["partitionPath"][0].as_py() for i in writes)
        assert set(partitions.values()) == {WRITES}
        return
    # of writes to one file group none began before the one before it was completed
    spans = sorted((i.completion or "", i.requested) for i in writes)
    assert all(later[1] > earlier[0] for earlier, later in itertools.pairwise(spans))
