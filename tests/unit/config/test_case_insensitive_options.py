"""Options of readers and writers."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.config.case_insensitive_options import with_options

pytest.importorskip("pyspark")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": None}, {"A": "1", "path": "/t"}),
        ({"a": True}, {"a": "true", "path": "/t"}),
        ({"PATH": "/u"}, {"A": "1", "path": "/u"}),
        (
            {"hoodie.datasource.write.recordKey.field": "id"},
            {"A": "1", "path": "/t", "hoodie.datasource.write.recordkey.field": "id"},
        ),
    ],
)
def test_options_are_added_as_spark_does(given: dict[str, Any], expected: dict[str, str]) -> None:
    assert with_options({"A": "1", "path": "/t"}, given) == expected


def test_every_writer_treats_options_alike() -> None:
    from pyhudi.spark.activation.recorded_settings import recorded_settings
    from pyhudi.spark.sql.dataframe_writer_v2 import TableWriter

    class Target:
        pass

    target, given = Target(), {"a": None, "b": False, "C": 1, "c": 2}
    recorded_settings(target).add_options(given)
    writer = TableWriter(None, "t").options(**given)  # type: ignore[arg-type]
    assert writer.writer_options == recorded_settings(target).options == {"b": "false", "c": "2"}
