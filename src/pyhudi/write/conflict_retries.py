"""Attempts at a write or statement that has conflicts with other writers."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pyhudi.config import Options, options
from pyhudi.errors import ConflictError, InstantNotFoundError, NonRetryableConflictError
from pyhudi.storage import Storage
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.write.write_result import ChangeResult, WriteResult

_Result = TypeVar("_Result", WriteResult, ChangeResult)

_log = logging.getLogger(__name__)
_FIXED = (
    f"{options.NUM_RETRIES_ON_CONFLICT.key} does not apply, because its rows were read from this table before that "
    "commit and would undo it: load the table again and repeat the write"
)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0


def with_retries(
    storage: Storage,
    opts: Options,
    attempt: Callable[[], _Result],
    is_fixed: Callable[[], bool] = lambda: False,
) -> _Result:
    """Run a write or statement, under `in_process_writer_lock`, again on the latest snapshot after each conflict with
    another writer, at most ``hoodie.write.num.retries.on.conflict.failures`` times, and once if another process has
    archived instants that it read before it began to write.

    Args:
        storage: Storage of the table.
        opts: Options of the write.
        attempt: Opens the table and writes.
        is_fixed: Called after a conflict. Returns True if another attempt would write the same rows, read from the
            table before the conflict. As they would undo the other writer's commit, there is no other attempt.

    Returns:
        The result of the attempt without a conflict, with the number of retries.

    Raises:
        ConflictError: Other writers were faster each time; nothing of the write is left.
        NonRetryableConflictError: Another attempt would have the same conflict, or undo the other writer's commit;
            nothing of the write is left.
    """
    max_retries = opts.get_typed(options.NUM_RETRIES_ON_CONFLICT)
    for retries in range(max_retries + 1):
        try:
            with in_process_writer_lock(storage, opts):
                return replace(_planned_again_if_archived(attempt, is_fixed), retries=retries)
        except ConflictError as conflict:
            if retries == max_retries or isinstance(conflict, NonRetryableConflictError):
                raise
            if is_fixed():
                raise NonRetryableConflictError(f"{conflict}; {_FIXED}") from conflict
            _log.warning("retrying a write (%d of %d) after a conflict: %s", retries + 1, max_retries, conflict)
            # Writers that had a conflict must not return at the same moment.
            time.sleep(random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**retries)))
    raise AssertionError("unreachable")


def _planned_again_if_archived(attempt: Callable[[], _Result], is_fixed: Callable[[], bool]) -> _Result:
    """Run an attempt, again if it fails because instants of its snapshot have left the active timeline. A transaction
    fails with another error (`PendingWrite`), so nothing was written then."""
    try:
        return attempt()
    except InstantNotFoundError:
        if is_fixed():
            raise
    return attempt()
