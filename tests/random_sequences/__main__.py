"""Run random sequences: `python -m tests.random_sequences --seeds 20`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import pyhudi
from tests.random_sequences.hudi_steps import Oracles
from tests.random_sequences.minimizer import minimal
from tests.random_sequences.sequence import Failure, Plan, run
from tests.sessions import start_session


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.random_sequences", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=14, help="number of steps of a sequence")
    parser.add_argument("--only", default="", help="numbers of the steps to take, separated by commas; of one seed")
    parser.add_argument("--minimize", action="store_true", help="leave out the steps that a failure does not need")
    parser.add_argument("--seconds", type=int, default=0, help="begin no sequence after so many seconds; 0: no limit")
    return parser.parse_args()


def main() -> int:
    """Run the sequences that the arguments name; return 1 if one fails."""
    arguments = _arguments()
    chosen = tuple(map(int, arguments.only.split(","))) if arguments.only else None
    with_apache_hudi = os.environ.get("WITH_HUDI", "") not in ("", "0")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    plans = [Plan.of_seed(seed, arguments.steps, chosen, with_apache_hudi=with_apache_hudi) for seed in seeds]
    if with_apache_hudi:
        plans.sort(key=lambda plan: plan.kind.version)  # one release is started after the other
    with tempfile.TemporaryDirectory(prefix="pyhudi-random-") as folder:
        spark = start_session(Path(folder))
        spark.sparkContext.setLogLevel("OFF")  # tasks of killed processes have nobody to report to
        pyhudi.activate(spark)
        oracles = Oracles() if with_apache_hudi else None
        try:
            failures = _run(plans, spark, Path(folder), oracles, arguments)
        finally:
            if oracles is not None:
                oracles.close()
            spark.stop()
    return 1 if failures else 0


def _run(
    plans: Sequence[Plan], spark: SparkSession, folder: Path, oracles: Oracles | None, arguments: argparse.Namespace
) -> list[Failure]:
    failures, begun, done = [], time.monotonic(), 0
    for plan in plans:
        if arguments.seconds and time.monotonic() - begun > arguments.seconds:
            break
        since = time.monotonic()
        failure = run(plan, spark, folder, oracles)
        done += 1
        print(f"seed {plan.seed}: {'failed' if failure else 'ok'}, {time.monotonic() - since:.1f} s", flush=True)
        if failure is not None:
            failure = _minimized(failure, spark, folder, oracles) if arguments.minimize else failure
            print(failure, flush=True)
            failures.append(failure)
    seeds = ", ".join(str(failure.plan.seed) for failure in failures)
    print(f"{done} sequences in {time.monotonic() - begun:.0f} s, {len(failures)} failed{': ' if seeds else ''}{seeds}")
    return failures


def _minimized(failure: Failure, spark: SparkSession, folder: Path, oracles: Oracles | None) -> Failure:
    found = [failure]

    def fails(steps: Sequence[int]) -> bool:
        again = run(replace(failure.plan, chosen=tuple(steps)), spark, folder, oracles)
        if again is not None and again.is_like(failure):
            found.append(again)
            return True
        return False

    minimal([number for number in failure.plan.numbers if number <= failure.number], fails)
    return found[-1]


if __name__ == "__main__":
    sys.exit(main())
