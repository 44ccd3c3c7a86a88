"""Sequences of steps: a seed says which, each step has random numbers of its own, so that others can be left out."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pyhudi import register_merger, unregister_merger
from tests.random_sequences import hudi_steps, process_steps, service_steps, stream_steps, write_steps  # noqa: F401  registers steps
from tests.random_sequences.checks import at_the_end, check
from tests.random_sequences.life import Life
from tests.random_sequences.steps import STEPS, draw_steps
from tests.random_sequences.table_kinds import JoiningTags, TableKind, draw_kind

if TYPE_CHECKING:
    from tests.random_sequences.hudi_steps import Oracles


@dataclass(frozen=True)
class Plan:
    """A kind of table and the names of steps. ``chosen``: numbers of the steps that are taken, None: all."""

    seed: int
    kind: TableKind
    names: Sequence[str]
    with_apache_hudi: bool = False
    chosen: tuple[int, ...] | None = None

    @classmethod
    def of_seed(
        cls, seed: int, steps: int, chosen: tuple[int, ...] | None = None, *, with_apache_hudi: bool = False
    ) -> Plan:
        """Return the plan of a seed."""
        rng = Random(seed)
        kind = draw_kind(rng)
        names = draw_steps(rng, kind, steps, with_apache_hudi=with_apache_hudi)
        return cls(seed, kind, names, with_apache_hudi, chosen)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the steps that are taken."""
        return tuple(range(len(self.names))) if self.chosen is None else self.chosen

    def command(self) -> str:
        """Return a command that repeats the sequence."""
        steps = "" if self.chosen is None else f" --only {','.join(map(str, self.chosen))}"
        hudi = "WITH_HUDI=1 " if self.with_apache_hudi else ""
        return f"{hudi}python -m tests.random_sequences --first {self.seed} --seeds 1 --steps {len(self.names)}{steps}"


@dataclass(frozen=True)
class Failure:
    """A sequence that failed, at a step (its number; the number of steps: in the checks at the end)."""

    plan: Plan
    number: int
    error: BaseException

    def __str__(self) -> str:
        taken = [f"{n} {self.plan.names[n]}" for n in self.plan.numbers if n <= self.number]
        lines = "".join(traceback.format_exception(self.error))
        return (
            f"seed {self.plan.seed}: {self.plan.kind}\nsteps: {', '.join(taken)}\n{lines}repeat: {self.plan.command()}"
        )

    def is_like(self, other: Failure | None) -> bool:
        """Whether another failure is of the same kind: an error from the same place."""
        return other is not None and _place(self.error) == _place(other.error)


def _place(error: BaseException) -> tuple[str, str]:
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__, frames[-1].name if frames else ""


def run(plan: Plan, spark: SparkSession, folder: Path, oracles: Oracles | None = None) -> Failure | None:
    """Run a sequence on a new table in a folder; return how it failed, or None."""
    path = folder / f"table-{plan.seed}"
    theirs = oracles.of_version(plan.kind.version) if oracles is not None else None
    life = Life(spark, str(path), plan.kind, theirs)
    number = 0
    try:
        with _merger():
            for number in plan.numbers:
                life.step = number
                STEPS[plan.names[number]].act(life, Random(f"{plan.seed}/{number}"))
                check(life, Random(f"{plan.seed}/{number}/checks"))
            number = life.step = len(plan.names)
            write_steps.upsert(life, Random(f"{plan.seed}/{number}"))  # rolls back what has died
            at_the_end(life)
    except Exception as error:
        return Failure(plan, number, error)
    finally:
        life.remove()
    return None


@contextlib.contextmanager
def _merger() -> Iterator[None]:
    register_merger(JoiningTags())
    try:
        yield
    finally:
        unregister_merger(JoiningTags.strategy_id)
