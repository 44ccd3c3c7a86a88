"""A custom merger for tests."""

from __future__ import annotations

import pyarrow.compute as pc

from pyhudi import RecordMerger, Records


class Joining(RecordMerger):
    """Joins the texts of all versions in one column, older ones first; what is deleted stays deleted."""

    strategy_id = "11111111-0000-0000-0000-00000000000a"
    columns = ("v",)

    def merge(self, older: Records, newer: Records) -> Records:
        (name,) = self.columns
        at = newer.rows.schema.get_field_index(name)
        joined = pc.binary_join_element_wise(older.rows.column(name), newer.rows.column(name), "")
        rows = newer.rows.set_column(at, newer.rows.schema.field(at), joined)
        return Records(rows, pc.or_(older.is_delete, newer.is_delete), newer.ordering, newer.assigned)
