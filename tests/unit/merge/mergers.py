"""Custom mergers, correct and incorrect ones."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import RecordMerger, Records, choose, newer_by_ordering


class ByOrdering(RecordMerger):
    """Merges as EVENT_TIME_ORDERING, except that a delete without ordering value has the value 0."""

    strategy_id = "11111111-0000-0000-0000-000000000001"
    columns = ()

    def merge(self, older: Records, newer: Records) -> Records:
        return choose(older, newer, newer_by_ordering(older, newer))


class First(RecordMerger):
    """Keeps the version that was written first."""

    strategy_id = "11111111-0000-0000-0000-000000000002"
    columns = ()

    def merge(self, older: Records, newer: Records) -> Records:
        return choose(older, newer, pa.array([False] * len(newer)))


class Total(RecordMerger):
    """Adds up the column ``n``; deleted records stay deleted."""

    strategy_id = "11111111-0000-0000-0000-000000000003"
    columns = ("n",)

    def merge(self, older: Records, newer: Records) -> Records:
        at = newer.rows.schema.get_field_index("n")
        field = newer.rows.schema.field(at)
        total = pc.add(pc.fill_null(older.rows.column("n"), 0), pc.fill_null(newer.rows.column("n"), 0))
        rows = newer.rows.set_column(at, field, total.cast(field.type))
        dead = pc.or_(older.is_delete, newer.is_delete)
        return Records(rows, dead, (), newer.assigned) if not newer.ordering else self._latest(rows, dead, older, newer)

    @staticmethod
    def _latest(rows: pa.RecordBatch, dead: pa.BooleanArray, older: Records, newer: Records) -> Records:
        # only the ordering value of the last delete counts
        source = choose(older, newer, newer.is_delete)
        ordering = tuple(
            pc.if_else(dead, kept, mine) for kept, mine in zip(source.ordering, newer.ordering, strict=True)
        )
        return Records(rows, dead, ordering, newer.assigned)


class Resurrecting(Total):
    """A total that restarts after a delete: the merge of (delete, row) does not include the delete, so it is not
    associative."""

    def merge(self, older: Records, newer: Records) -> Records:
        before = pc.if_else(older.is_delete, 0, pc.fill_null(older.rows.column("n"), 0))
        at = newer.rows.schema.get_field_index("n")
        field = newer.rows.schema.field(at)
        total = pc.add(before, pc.fill_null(newer.rows.column("n"), 0)).cast(field.type)
        return newer.with_rows(newer.rows.set_column(at, field, total))


class Average(Total):
    """Not associative."""

    def merge(self, older: Records, newer: Records) -> Records:
        total = super().merge(older, newer)
        at = newer.rows.schema.get_field_index("n")
        half = pc.divide(total.rows.column("n"), 2).cast(total.rows.schema.field(at).type)
        return total.with_rows(total.rows.set_column(at, total.rows.schema.field(at), half))
