"""Plans of table services on the timeline: adding a plan, reading the pending ones, and executing them in turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol, TypeVar

from pyhudi.config import Options
from pyhudi.errors import BusyError, InstantNotFoundError
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.time_generator import ReservedTime
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.single_writer_locks import in_process_plan_lock
from pyhudi.transaction.table_checks import refuse_pending_restore

_log = logging.getLogger(__name__)


class ScheduledPlan(Protocol):
    """A plan; ``instant`` is None until it is on the timeline."""

    @property
    def instant(self) -> str | None: ...


class BusyPlans(Enum):
    """Treatment of pending plans that someone else may be executing."""

    REFUSE = auto()
    """Raise BusyError; wait only for other threads of this process."""
    LEAVE = auto()
    """Skip plans that another process is executing or has executed, and all of them while another thread of this
    process executes plans."""
    TAKE_OVER = auto()
    """Execute a plan of another program without a heartbeat: the user has requested it, knowing that the program does
    not run."""

    @classmethod
    def for_request(cls, instant: str | None) -> BusyPlans:
        """Return the treatment for a user who requests the plan of an instant (None: all plans)."""
        return cls.REFUSE if instant is None else cls.TAKE_OVER


Plan = TypeVar("Plan")
Scheduled = TypeVar("Scheduled", bound=ScheduledPlan)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LockedTimeline:
    """A table whose lock is held, to change the plans on its timeline."""

    table: TableSnapshot
    _reserved: ReservedTime

    def request(self, action: str, content: bytes) -> Instant:
        """Add a plan with a new instant time.

        Raises:
            LockError: The lock was lost.
        """
        instant = self._reserved.take(self.table.active.latest_time)
        self._reserved.lock.ensure_held()
        return self.table.active.create_requested(action, instant, content)

    def remove(self, instant: str, action: str) -> None:
        """Remove a plan that has not been started.

        Raises:
            LockError: The lock was lost.
        """
        self._reserved.lock.ensure_held()
        self.table.active.delete_pending(instant, action)


@contextmanager
def lock_timeline(client: TableMetaClient, opts: Options) -> Iterator[LockedTimeline]:
    """Hold the lock of the table to add a plan to its timeline.

    Raises:
        LockError: The lock could not be acquired.
        TransactionError: A restore is pending.
    """
    with make_time_generator(client.storage, opts, client.config.timezone).reserve() as reserved:
        table = TableSnapshot.load(client)
        refuse_pending_restore(table.active)
        yield LockedTimeline(table, reserved)


def read_plans(
    active: ActiveTimeline, instants: Iterable[Instant], decode: Callable[[str, str, State, bytes], Plan]
) -> list[Plan]:
    """Return the plans of pending instants, in their order.

    Args:
        active: The active timeline.
        instants: The instants, requested or inflight.
        decode: Decodes a plan from action, requested time, state, and content of the requested file.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
        InstantNotFoundError: An instant has no requested file.
    """
    plans = []
    for instant in instants:
        data = active.read_state(instant, State.REQUESTED)
        with active.parsing(active.in_state(instant, State.REQUESTED) or instant):
            plans.append(decode(instant.action, instant.requested, instant.state, data))
    return plans


def run_plans(
    client: TableMetaClient,
    opts: Options,
    plans: Iterable[Scheduled],
    run: Callable[[Scheduled], Result],
    *,
    service: str,
    instant: str | None,
    busy: BusyPlans,
) -> Iterator[Result]:
    """Execute pending plans in their order, each under the lock of this process for plans of the table.

    Args:
        client: The table.
        opts: Options of the service.
        plans: The pending plans.
        run: Executes a plan.
        service: Name of the service in the error.
        instant: Requested time of the plan to execute; None for all.
        busy: Treatment of plans that someone else is executing or has executed.

    Yields:
        The result of each plan.

    Raises:
        InstantNotFoundError: No plan has that instant.
        BusyError: Another process is executing a plan.
    """
    requested = [plan for plan in plans if instant in (None, plan.instant)]
    if instant is not None and not requested and busy is not BusyPlans.LEAVE:
        raise InstantNotFoundError(f"no {service} {instant!r} is pending in the table at {client.storage.root}")
    for plan in requested:
        try:
            with in_process_plan_lock(client.storage, opts, wait=busy is not BusyPlans.LEAVE):
                result = run(plan)
        except BusyError as error:
            if busy is not BusyPlans.LEAVE:
                raise
            _log.warning("a plan remains pending: %s", error)
        else:
            yield result
