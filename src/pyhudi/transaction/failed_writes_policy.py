"""Policy by which pending writes of other writers count as failed."""

from __future__ import annotations

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.config.options import FAILED_WRITES_POLICY
from pyhudi.transaction.locks.lock_provider import has_several_writers


def failed_writes_policy(opts: Options) -> FailedWritesPolicy:
    """Return the policy for failed writes; with several writers the default is LAZY."""
    if not opts.is_set(FAILED_WRITES_POLICY) and has_several_writers(opts):
        return FailedWritesPolicy.LAZY
    return opts.get_typed(FAILED_WRITES_POLICY)
