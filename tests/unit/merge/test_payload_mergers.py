"""Payload classes without an equivalent merge mode leave the rows that Apache Hudi leaves of the same versions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import RecordMerger, Records
from pyhudi.config.enums import MergeMode
from pyhudi.merge.mergers.merger_invocation import fold_records
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.table.config.merge_settings import PAYLOAD_STRATEGY, MergeSettings
from tests.unit.merge.mergers import First

MODEL = "org.apache.hudi.common.model."
Version = tuple[int | None, str | None]
"""Ordering value and text of a version; deletes have no text, those by key no ordering value either."""

BASE = (10, "base")
VERSIONS: dict[str, tuple[Version, ...]] = {
    "lesser": (BASE, (9, "late")),
    "greater, then lesser": (BASE, (100, "first"), (50, "late")),
    "equal": (BASE, (10, "same"), (10, "same2")),
    "delete, then lesser": (BASE, (20, None), (1, "again")),
    "lesser delete, then greater": (BASE, (5, None), (7, "again")),
    "greater": (BASE, (12, "second")),
    "equal delete": (BASE, (10, None)),
    "delete by key": (BASE, (None, None)),
    "greater, then delete by key": (BASE, (11, "first"), (13, "second"), (None, None)),
    "three": (BASE, (10, "d1"), (12, "d2"), (8, "d3")),
}
LEFT: dict[str, tuple[str | None, ...]] = {
    "HoodieAvroPayload": ("late", "late", "same2", "again", "again", "second", None, None, None, "d3"),
    "FirstValueAvroPayload": ("base", "first", "base", None, "base", "second", None, None, None, "d2"),
    "ReverseOrderHoodieRecordPayload": ("late", "base", "same2", "again", "again", "base", None, None, None, "d3"),
}
"""What Apache Hudi 1.2.0 (FirstValueAvroPayload: 1.0.2) leaves of the versions in a merge-on-read table."""


def merger_of(name: str, ordering: tuple[str, ...] = ("o",)) -> RecordMerger:
    settings = MergeSettings(MergeMode.CUSTOM, PAYLOAD_STRATEGY, ordering, payload_class=MODEL + name)
    merger = MergeRules.for_table(settings).merger
    assert merger is not None
    return merger


def folded(merger: RecordMerger, versions: Sequence[Version], *, ordered: bool = True) -> str | None:
    texts = pa.array([text for _, text in versions], pa.string())
    ordering = pa.array([value for value, _ in versions], pa.int64())
    rows = pa.record_batch([ordering, texts], names=["o", "v"])
    records = Records(rows, texts.is_null(), (ordering,) if ordered else ())
    (left,) = fold_records(records, pa.array([0] * len(versions)).to_numpy(), merger).rows.column("v").to_pylist()
    return None if left is None else str(left)


@pytest.mark.parametrize("name", LEFT)
def test_versions(name: str) -> None:
    merger = merger_of(name)
    assert tuple(folded(merger, versions) for versions in VERSIONS.values()) == LEFT[name]


def test_without_ordering_fields_all_values_are_equal() -> None:
    versions = [(1, "first"), (2, "last")]
    left = [folded(merger_of(name, ()), versions, ordered=False) for name in LEFT]
    assert left == ["last", "first", "last"]


def test_a_merger_of_the_user_replaces_that_of_a_payload_class() -> None:
    class Mine(First):
        strategy_id = MODEL + "HoodieAvroPayload"

    pyhudi.register_merger(Mine())
    try:
        assert isinstance(merger_of("HoodieAvroPayload"), Mine)
    finally:
        pyhudi.unregister_merger(Mine.strategy_id)
