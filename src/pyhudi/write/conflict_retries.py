"""Tries of a statement that other writers are in the way of."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace

from pyhudi.config import Options, options
from pyhudi.errors import ConflictError
from pyhudi.write.write_result import ChangeResult

_log = logging.getLogger(__name__)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0


def with_retries(opts: Options, attempt: Callable[[], ChangeResult]) -> ChangeResult:
    """Run a statement, anew on the newest snapshot each time that another writer was faster, at most as often as
    ``hoodie.write.num.retries.on.conflict.failures`` says.

    Raises:
        ConflictError: others were faster each time; nothing of the statement is left.
    """
    most = opts.get_typed(options.NUM_RETRIES_ON_CONFLICT)
    for tried in range(most + 1):
        try:
            return replace(attempt(), retries=tried)
        except ConflictError as conflict:
            if tried == most:
                raise
            _log.info("trying again (%d of %d): %s", tried + 1, most, conflict)
            # writers that collided do not come back at the same moment
            time.sleep(random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**tried)))
    raise AssertionError("unreachable")
