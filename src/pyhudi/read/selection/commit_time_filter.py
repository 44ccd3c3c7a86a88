"""Condition of an incremental query on the rows of the files it reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.schema.meta_fields import COMMIT_TIME


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """A condition on ``_hoodie_commit_time``: greater than ``after``, at most ``up_to``, one of ``any_of`` and none of
    ``none_of``; None means no such bound. Without any bound all rows match."""

    after: str | None = None
    up_to: str | None = None
    any_of: tuple[str, ...] | None = None
    none_of: tuple[str, ...] = ()

    @classmethod
    def only(cls, selected: Collection[str], all_instants: Collection[str], *, from_start: bool) -> CommitTimes:
        """Return the condition for the rows of ``selected`` instants, which are among ``all_instants``. ``from_start``
        includes older instants, which are archived.

        The result is a range if no other instant lies in between, because ranges can prune row groups by their
        statistics.
        """
        others = sorted(set(all_instants) - set(selected))
        first, last = min(selected, default=""), max(selected, default="")
        if from_start:
            later = [o for o in others if o < last]
            return cls(up_to=last, none_of=tuple(later)) if selected else cls(up_to="")
        earlier = [o for o in others if o < first]
        if earlier and not any(first < o < last for o in others):
            return cls(after=earlier[-1], up_to=last)
        return cls(any_of=tuple(sorted(selected)))

    def __contains__(self, instant: object) -> bool:
        """True if rows of that instant satisfy the condition."""
        return (
            isinstance(instant, str)
            and (self.after is None or instant > self.after)
            and (self.up_to is None or instant <= self.up_to)
            and (self.any_of is None or instant in self.any_of)
            and instant not in self.none_of
        )

    def __str__(self) -> str:
        bounds = {
            "> ": self.after,
            "<= ": self.up_to,
            "in ": None if self.any_of is None else f"{len(self.any_of)} instants",
            "not in ": f"{len(self.none_of)} instants" if self.none_of else None,
        }
        return " and ".join(f"{COMMIT_TIME} {op}{bound}" for op, bound in bounds.items() if bound is not None)

    def arrow(self) -> pc.Expression:
        """Return the condition as a pyarrow expression."""
        time = pc.field(COMMIT_TIME)
        parts = [time.is_valid()]
        if self.after is not None:
            parts.append(time > self.after)
        if self.up_to is not None:
            parts.append(time <= self.up_to)
        if self.any_of is not None:
            parts.append(time.isin(pa.array(self.any_of, pa.string())))
        if self.none_of:
            parts.append(~time.isin(pa.array(self.none_of, pa.string())))
        return reduce(lambda a, b: a & b, parts[1:], parts[0])
