"""Short sequences of random steps; `make random-sequences` runs longer ones of other seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyhudi
from tests.cases import classic, seldom
from tests.properties import FACTOR
from tests.random_sequences.sequence import Plan, run


@classic
@pytest.mark.parametrize("seed", [10, seldom(16)])
def test_short_sequences(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    pyhudi.activate(spark)
    try:
        failure = run(Plan.of_seed(seed, 8 if FACTOR >= 1 else 5), spark, tmp_path)
    finally:
        pyhudi.deactivate()
    assert failure is None, str(failure)
