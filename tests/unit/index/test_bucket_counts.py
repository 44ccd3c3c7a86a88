"""Numbers of buckets that differ between partitions; the expected ones are what Apache Hudi's own classes give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import FormatError, InvalidOptionError
from pyhudi.index.bucket_counts import FOLDER, BucketCounts, load_counts, store_first_counts
from pyhudi.storage import open_storage
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from tests.tables import HandMadeTable, at

NONE = Timeline()


def _counts(expressions: str, **more: str) -> BucketCounts:
    given = {"hoodie.bucket.index.partition.expressions": expressions, "hoodie.bucket.index.num.buckets": "4"}
    return BucketCounts.from_options(Options.parse({**given, **more}))


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
    assert load_counts(storage, NONE) is None
    store_first_counts(storage, counts)
    store_first_counts(storage, _counts("p3,9"))  # another writer was faster
    text = (tmp_path / FOLDER / "00000000000000.hashing_config").read_text()
    assert text == (
        '{\n  "expressions" : "p1,2;p2,8",\n  "defaultBucketNumber" : 4,\n  "rule" : "regex",\n  "version" : 1,\n'
        '  "instant" : "00000000000000"\n}'
    )
    assert load_counts(storage, NONE) == counts
    storage.write(f"{FOLDER}/20260101000000000.hashing_config", text.replace("p1,2;", "").encode())
    rescale = Instant("20260101000000000", Action.REPLACE_COMMIT, State.INFLIGHT, None, "")
    later = Instant("20260102000000000", Action.COMMIT, State.COMPLETED, "20260102000000000", "")
    assert load_counts(storage, NONE) == counts  # it was begun later
    assert load_counts(storage, Timeline([rescale, later])) == counts
    assert load_counts(storage, Timeline([replace(rescale, state=State.COMPLETED)])) == _counts("p2,8")
    archived = Timeline([later])
    assert load_counts(storage, archived) == _counts("p2,8")
    storage.delete(f"{FOLDER}/00000000000000.hashing_config")
    assert load_counts(storage, archived) == _counts("p2,8")
    storage.write(f"{FOLDER}/20260101000000000.hashing_config", b"{}")
    with pytest.raises(FormatError, match="not a valid configuration of buckets"):
        load_counts(storage, archived)


@pytest.mark.parametrize("completed", [False, True], ids=["failed", "completed"])
def test_a_rescale_that_is_undone_leaves_the_former_numbers(tmp_path: Path, completed: bool) -> None:
    table = HandMadeTable(tmp_path / "t")
    old, new = (f"00000000-{kind}-41f4-ac2c-11df7fe847dc-0" for kind in ("aaaa", "bbbb"))
    rows = [{"id": "1", "p": "p1", "v": 1}]
    table.write(1, {("p1", old): rows})
    store_first_counts(table.storage, _counts("p1,2"))
    table.storage.write(f"{FOLDER}/{at(2)}.hashing_config", _counts("p1,16").encode())
    table.write(
        2,
        {("p1", new): rows},
        action=Action.REPLACE_COMMIT,
        operation="INSERT_OVERWRITE",
        replaced=[("p1", old)],
        pending=not completed,
    )
    services = HudiTable.for_path(str(table.root)).services
    if completed:
        services.restore(at(1))
    else:
        services.rollback(at(2))
    assert load_counts(table.storage, table.active.reload().timeline) == _counts("p1,2")
