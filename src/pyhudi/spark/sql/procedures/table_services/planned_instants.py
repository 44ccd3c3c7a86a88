"""Instants of plans that a procedure is to run."""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.errors import QueryError


def check_planned(instants: Collection[str], planned: Collection[str], service: str) -> None:
    """Refuse instants without a plan.

    Raises:
        QueryError: There is no plan at one of them. The message has the instants of the pending plans.
    """
    unknown = [instant for instant in instants if instant not in planned]
    if unknown:
        raise QueryError(
            f"no {service} is planned at {unknown[0]!r}; there are: {', '.join(sorted(planned)) or 'none'}"
        )
