"""What is said of a write before it begins."""

from __future__ import annotations

import warnings

import pytest

from pyhudi.config import Options
from pyhudi.config.enums import Operation
from pyhudi.errors import PartitionValueWarning
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.write_checks import warn_of_old_partitions

MOVES = "hoodie.record.index.update.partition.path"


def warned(operation: Operation = Operation.UPSERT, fields: str = "city", **more: str) -> list[str]:
    table = Options.parse(
        {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": fields,
        }
    )
    opts = Options.parse({"hoodie.index.type": "RECORD_INDEX"} | {k.replace("__", "."): v for k, v in more.items()})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_old_partitions(TableConfig.for_new_table(table), operation, opts)
    assert all(w.category is PartitionValueWarning for w in found)
    return [str(w.message) for w in found]


def test_records_that_stay_in_their_old_partition() -> None:
    (message,) = warned()
    assert "its incoming city is ignored" in message
    assert MOVES in message


@pytest.mark.parametrize("said", ["true", "false"])
def test_who_says_what_is_wanted_is_not_warned(said: str) -> None:
    assert warned(hoodie__record__index__update__partition__path=said) == []


def test_where_nothing_can_be_dropped() -> None:
    assert warned(fields="") == []
    assert warned(Operation.INSERT) == []
    assert warned(hoodie__index__type="RECORD_LEVEL_INDEX") == []
    assert warned(hoodie__index__type="GLOBAL_SIMPLE") == []
