"""Mergers of Apache Hudi's payload classes that no merge mode is equivalent to.

Tables of them have the mode CUSTOM. `pyhudi.register_merger` with the name of a class replaces its merger.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.mergers.record_merger import RecordMerger, Records, choose, newer_by_ordering
from pyhudi.merge.ordering_values import without_ordering
from pyhudi.table.config.payload_classes import MODEL_PACKAGE


class _PayloadMerger(RecordMerger):
    """Merger that keeps one of two versions and needs no columns besides the ordering fields."""

    columns = ()

    @property
    def strategy_id(self) -> str:
        return MODEL_PACKAGE + type(self).__name__


class HoodieAvroPayload(_PayloadMerger):
    """The version of the later commit: the default of Apache Hudi's Java client and of its Kafka Connect sink."""

    def merge(self, older: Records, newer: Records) -> Records:  # noqa: ARG002
        return newer


class FirstValueAvroPayload(_PayloadMerger):
    """The version with the greater ordering value; of equal ones a delete, or else that of the earlier commit.

    A class of releases 0.15 and 1.0. Deletes of log files act as in 1.0.
    """

    def merge(self, older: Records, newer: Records) -> Records:
        by_key = pa.array(without_ordering(newer.ordering, len(newer)))
        deletes = pc.and_(newer.is_delete, pc.or_(by_key, _not_less(newer, older)))
        return choose(older, newer, pc.or_(pc.invert(_not_less(older, newer)), deletes))


class ReverseOrderHoodieRecordPayload(_PayloadMerger):
    """The version with the lesser ordering value; of equal ones, or after a delete, that of the later commit."""

    def merge(self, older: Records, newer: Records) -> Records:
        return choose(older, newer, pc.or_(older.is_delete, _not_less(older, newer)))


def _not_less(left: Records, right: Records) -> pa.BooleanArray:
    """Return a mask of the pairs whose left ordering value is not less; without ordering fields, all are equal."""
    return newer_by_ordering(right, left) if left.ordering else pa.repeat(pa.scalar(True), len(left))


PAYLOAD_MERGERS: Mapping[str, RecordMerger] = {
    merger.strategy_id.lower(): merger
    for merger in (HoodieAvroPayload(), FirstValueAvroPayload(), ReverseOrderHoodieRecordPayload())
}
"""The mergers by the lower-case names of their classes."""
