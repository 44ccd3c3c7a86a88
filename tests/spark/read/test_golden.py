"""Our Spark reader gives the rows of the golden tables that Apache Hudi gave, through ``format("hudi")``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.errors import HudiError
from tests.cases import seldom
from tests.golden.expected import answers_error, cases, check, unpack
from tests.spark_arrow import to_arrow


@pytest.fixture(scope="module")
def active(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with ``format("hudi")`` being ours."""
    pyhudi.activate(spark)
    yield spark
    pyhudi.deactivate()


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where golden tables are unpacked, once for all tests."""
    return tmp_path_factory.mktemp("golden")


def _cases() -> list[Any]:
    """Snapshots of all tables; every fourth one of the other queries, which the local reader, whose plans are the same,
    is asked all the time."""
    others = [case for case in cases() if case.values[1] != "snapshot"]
    left_out = {case.id for number, case in enumerate(others) if number % 4 and not case.marks}
    return [seldom(case) if case.id in left_out else case for case in cases()]


@pytest.mark.parametrize(("name", "kind"), _cases())
def test_golden(name: str, kind: str, tables: Path, active: SparkSession) -> None:
    golden = unpack(name, tables)
    for query in golden.queries(kind):
        reader = active.read.format("hudi").options(**query.options)
        if query.error is None:
            check(golden, query, to_arrow(reader.load(str(golden.path))))
        elif answers_error(query):
            with pytest.raises(HudiError):
                reader.load(str(golden.path)).count()
