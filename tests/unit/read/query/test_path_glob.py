"""Path globs of incremental queries."""

from __future__ import annotations

import re

import pytest

from pyhudi.read.query.path_glob import glob_pattern


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*/a/*", "file:///t/a/x.parquet", True),
        ("*/a/*", "file:///t/b/x.parquet", False),
        ("*/p=[ab]/*", "s3a://t/p=a/b/x.parquet", True),
        ("*/p=[!ab]/*", "s3a://t/p=a/x.parquet", False),
        ("*/{x,y?}/*", "/t/yz/f", True),
        ("*/{x,y?}/*", "/t/y/f", False),
        (r"*/\*/*", "/t/*/f", True),
        ("*.parquet", "/t/aparquet", False),
        ("a,b}", "a,b}", True),
        ("{a,{b,c}d}", "cd", True),
        ("[a", "[a", True),
    ],
)
def test_path_globs(glob: str, path: str, matches: bool) -> None:
    assert bool(re.match(glob_pattern(glob), path)) is matches
