"""Numbers of buckets that differ between partitions; the expected ones are what Apache Hudi's own classes give."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.errors import FormatError, InvalidOptionError
from pyhudi.index.bucket_counts import FOLDER, BucketCounts, load_counts, store_counts
from pyhudi.storage import open_storage


def _counts(expressions: str, **more: str) -> BucketCounts:
    given = {"hoodie.bucket.index.partition.expressions": expressions, "hoodie.bucket.index.num.buckets": "4"}
    return BucketCounts.of(Options.parse({**given, **more}))


def test_the_first_rule_that_is_found_in_the_path_holds() -> None:
    counts = _counts(r"p1,2;^p,8; x\d+ , 16 ")
    found = {path: counts.of_partition(path) for path in ("p1", "ap1", "p12", "p9", "q", "x77/y")}
    assert found == {"p1": 2, "ap1": 2, "p12": 2, "p9": 8, "q": 4, "x77/y": 16}


@pytest.mark.parametrize("text", ["p1", "p1,2,3", "p1,many", "p1,0", "(,2"])
def test_rules_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="regular expression and a number"):
        _counts(text)
    with pytest.raises(InvalidOptionError, match="regex"):
        _counts("p1,2", **{"hoodie.bucket.index.partition.rule.type": "spark"})


def test_the_file_is_written_as_apache_hudi_writes_it(tmp_path: Path) -> None:
    storage, counts = open_storage(str(tmp_path)), _counts("p1,2;p2,8")
    assert load_counts(storage, []) is None
    store_counts(storage, counts)
    store_counts(storage, _counts("p3,9"))  # another writer was faster
    text = (tmp_path / FOLDER / "00000000000000.hashing_config").read_text()
    assert text == (
        '{\n  "expressions" : "p1,2;p2,8",\n  "defaultBucketNumber" : 4,\n  "rule" : "regex",\n  "version" : 1,\n'
        '  "instant" : "00000000000000"\n}'
    )
    assert load_counts(storage, []) == counts
    storage.write(f"{FOLDER}/20260101000000000.hashing_config", text.replace("p1,2;", "").encode())
    assert load_counts(storage, []) == counts
    assert load_counts(storage, ["20260101000000000"]) == _counts("p2,8")
    storage.write(f"{FOLDER}/20260101000000000.hashing_config", b"{}")
    with pytest.raises(FormatError, match="not a valid configuration of buckets"):
        load_counts(storage, ["20260101000000000"])
