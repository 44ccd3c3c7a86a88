"""Slices of many log files: what is held of them at a time, and how often they are asked for."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyhudi.errors import QueryError
from pyhudi.merge.batch_sizes import MergeMemory
from pyhudi.merge.file_group_reader import read_slice
from pyhudi.merge.file_slice import SliceContext
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.storage import Storage
from tests.unit.merge.slices import Slice

KB = 1024


@dataclass
class Counted:
    """A storage that counts what is asked of it."""

    inner: Storage
    asked: Counter[str] = field(default_factory=Counter)

    def read(self, path: str) -> bytes:
        self.asked["read"] += 1
        return self.inner.read(path)

    def open_input(self, path: str) -> Any:
        self.asked["open"] += 1
        return self.inner.open_input(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def many_logs(folder: Path, files: int, kilobytes: int) -> tuple[Slice, tuple[int, ...]]:
    """A slice of so many log files of that size, each with one record, and their sizes."""
    made = Slice(folder)
    made.base(1, [{"id": "k", "o": 1, "a": "", "b": 1}])
    for i in range(files):
        text = np.random.default_rng(i).bytes(kilobytes * KB // 2).hex()
        made.log(i + 2, [{"id": f"k{i % 3}", "o": i + 2, "a": text, "b": i}])
    return made, tuple((folder / path).stat().st_size for path in made.log_paths)


def numbers(context: SliceContext, made: Slice, sizes: Sequence[int]) -> list[int]:
    batches = read_slice(context, replace(made.slice, log_sizes=tuple(sizes)))
    return [value for batch in batches for value in batch.column("b").to_pylist()]


def test_few_small_files_are_asked_for_once(tmp_path: Path) -> None:
    made, sizes = many_logs(tmp_path, 5, 20)
    storage = Counted(made.storage)
    context = SliceContext(storage, made.whole_schema, ("b",))
    assert numbers(context, made, sizes) == [1, 3, 4, 2]
    assert storage.asked == {"read": 5, "open": 1}  # the base file is opened


def test_what_does_not_fit_is_read_again(tmp_path: Path) -> None:
    made, sizes = many_logs(tmp_path, 10, 20)
    storage = Counted(made.storage)
    context = SliceContext(storage, made.whole_schema, ("b",), memory=MergeMemory(4 * (3 * sizes[0] + 100)))
    assert sorted(numbers(context, made, sizes)) == [1, 7, 8, 9]
    # those that were held from the first look at them, and the last one, are not
    assert storage.asked == {"read": 10 + 7, "open": 1}


def test_contents_are_not_held_beyond_the_budget(tmp_path: Path) -> None:
    made, sizes = many_logs(tmp_path, 60, 512)
    context = SliceContext(made.storage, made.whole_schema, ("b",), memory=MergeMemory(1 << 20))
    tracemalloc.start()
    try:
        assert len(numbers(context, made, sizes)) == 4
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 30_000 * KB
    assert peak < 4_000 * KB


def test_closed_files_are_opened_again(tmp_path: Path) -> None:
    made, sizes = many_logs(tmp_path, 2, 1)
    for known in (sizes, ()):
        with LogFiles(made.storage) as logs:
            blocks = list(logs.blocks(made.log_paths, known))
            contents = [bytes(block.content()) for block in blocks]
            logs.close()
            assert [bytes(block.content()) for block in blocks] == contents


def test_a_file_that_goes_between_headers_and_contents(tmp_path: Path) -> None:
    made, _ = many_logs(tmp_path, 20, 1)

    class Going(Counted):
        def open_input(self, path: str) -> Any:
            if path == made.log_paths[17] and self.asked["open"] > 20:
                (tmp_path / path).unlink(missing_ok=True)
            return super().open_input(path)

    with pytest.raises(QueryError, match="no longer exists"):
        numbers(SliceContext(Going(made.storage), made.whole_schema, ("b",)), made, ())


_HANDLES = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from tests.unit.merge.logs.test_log_file_pool import SliceContext, many_logs, numbers
made, _ = many_logs(Path(sys.argv[1]), 100, 1)
assert len(numbers(SliceContext(made.storage, made.whole_schema, ("b",)), made, ())) == 4
"""


def test_handles_do_not_pile_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HANDLES, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
