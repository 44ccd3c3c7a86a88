"""Attributes that are computed once, without a lock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyhudi.errors import NotFoundError
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.storage.lazy_property import lazy_property


class _File:
    def __init__(self, together: threading.Barrier) -> None:
        self.together, self.reads = together, 0

    @lazy_property
    def footer(self) -> int:
        """Footer of the file."""
        self.reads += 1
        self.together.wait(timeout=60)
        return self.reads


def test_instances_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(2)
    files = [_File(together), _File(together)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda file: file.footer, files)) == [1, 1]
    assert [file.footer for file in files] == [1, 1], "it is read once"
    assert _File.footer.__doc__ == "Footer of the file."
    assert isinstance(MetadataTable.partition_paths, lazy_property)


def test_an_error_is_not_kept() -> None:
    class Missing:
        found = False

        @lazy_property
        def content(self) -> str:
            if not self.found:
                raise NotFoundError("no file")
            return "content"

    file = Missing()
    with pytest.raises(NotFoundError):
        _ = file.content
    file.found = True
    assert file.content == "content"
