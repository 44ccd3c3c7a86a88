"""Keys of the rows that statements change."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.write import row_change_locations
from pyhudi.spark.write.dml_commit import ColumnAssignments, NewRecords, RowChanges, RowLocations, RowPositions
from pyhudi.spark.write.row_change_locations import keyed_changes
from pyhudi.transaction.conflicts.changed_groups import GROUP_SCHEMA


@pytest.mark.parametrize("positions", RowPositions)
@pytest.mark.parametrize("deletes", [True, False])
def test_stored_keys_are_not_computed_again(
    monkeypatch: pytest.MonkeyPatch, positions: RowPositions, deletes: bool
) -> None:
    monkeypatch.setattr(row_change_locations, "with_keys", None)
    locations, rows = RowLocations(GROUP_SCHEMA.empty_table(), positions=positions), Mock()
    job = SimpleNamespace(changes=RowChanges(locations, NewRecords.NONE, deletes=deletes), df=rows)
    assert keyed_changes(job, "") is rows.withColumnsRenamed.return_value  # type: ignore[arg-type]
    rows.withColumnsRenamed.assert_called_once_with({STORED_KEY: RECORD_KEY, STORED_PATH: PARTITION_PATH})


@pytest.mark.parametrize("assigned", [ColumnAssignments(record_key=True), ColumnAssignments(partition_path=True)])
def test_rows_whose_keys_may_change(assigned: ColumnAssignments) -> None:
    locations = RowLocations(GROUP_SCHEMA.empty_table(), positions=RowPositions.ALL)
    assert not RowChanges(locations, NewRecords.NONE, assigned).keeps_keys
    assert not RowChanges(locations, NewRecords.ANY).keeps_keys
    assert not RowChanges(None, NewRecords.NONE).keeps_keys
