"""The steps of a sequence. Each does something to a table and tells its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.random_sequences.life import Life
from tests.random_sequences.table_kinds import TableKind

Act = Callable[[Life, Random], None]


@dataclass(frozen=True)
class Step:
    """Something that may happen to tables of some kinds, ``weight`` times as often as others."""

    act: Act
    weight: float
    fits: Callable[[TableKind], bool]
    with_apache_hudi: bool = False


STEPS: dict[str, Step] = {}
"""Steps by the name of their function."""


def step(
    weight: float, fits: Callable[[TableKind], bool] = lambda _: True, *, with_apache_hudi: bool = False
) -> Callable[[Act], Act]:
    """Register a function as a step."""

    def register(act: Act) -> Act:
        STEPS[act.__name__] = Step(act, weight, fits, with_apache_hudi)
        return act

    return register


def draw_steps(rng: Random, kind: TableKind, count: int, *, with_apache_hudi: bool) -> list[str]:
    """Draw the names of the steps of a sequence; the first one makes the table."""
    names = [
        name
        for name, found in STEPS.items()
        if found.weight and found.fits(kind) and (with_apache_hudi or not found.with_apache_hudi)
    ]
    return ["load", *rng.choices(names, [STEPS[name].weight for name in names], k=count - 1)]


def merge_on_read(kind: TableKind) -> bool:
    """Whether tables of a kind have log files."""
    return kind.merge_on_read
