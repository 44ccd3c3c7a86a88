"""Tables in which a MERGE by the columns of the key finds the records that an upsert finds."""

from __future__ import annotations

import pytest

from pyhudi.keygen.key_spec import KeySpec
from pyhudi.spark.dml.merge.merge_as_upsert import has_plain_keys
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField


@pytest.mark.parametrize(
    ("form", "plain"),
    [
        ({}, True),
        ({"hive_style": True, "url_encode": True}, True),
        ({"slash_dates": True}, False),
        # times within a second are in one partition, though the condition tells them apart
        ({"sql_timestamps": True}, False),
    ],
)
def test_paths_that_tell_values_apart(form: dict[str, bool], plain: bool) -> None:
    spec = KeySpec(KeyGenType.SIMPLE, ("id",), False, (PartitionField("p"),), **form)
    assert has_plain_keys(spec) == plain
