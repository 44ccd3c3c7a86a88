"""Run random statements on pyhudi and Apache Iceberg: `python -m tests.random_statements --seeds 20`."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path

from bench.jars import class_path

import pyhudi
from tests.random_statements.comparison import Comparison
from tests.random_statements.statements import RandomTable
from tests.sessions import start_session


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.random_statements", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="number of tables")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--statements", type=int, default=16, help="number of changes of a table")
    return parser.parse_args()


def main() -> int:
    """Run the tables that the arguments name; return 1 if one differs."""
    arguments = _arguments()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    differing = 0
    with tempfile.TemporaryDirectory(prefix="pyhudi-statements-") as folder:
        iceberg = {
            "spark.driver.extraClassPath": class_path("iceberg-1.10.0"),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.iceberg.type": "hadoop",
            "spark.sql.catalog.iceberg.warehouse": str(Path(folder) / "iceberg"),
        }
        spark = start_session(Path(folder), iceberg)
        spark.sparkContext.setLogLevel("OFF")
        pyhudi.activate(spark)
        comparison = Comparison.start(spark)
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            begin = time.monotonic()
            difference = comparison.run(RandomTable(seed), arguments.statements)
            print(f"seed {seed}: {difference or 'same rows'} ({time.monotonic() - begin:.0f} s)", flush=True)
            differing += difference is not None
        spark.stop()
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
