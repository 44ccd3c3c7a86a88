"""Concurrency mode of the writers of a table, and the policy for failed writes that follows from it."""

from __future__ import annotations

from pyhudi.config import Options, options
from pyhudi.config.enums import ConcurrencyMode, FailedWritesPolicy


def is_non_blocking(opts: Options) -> bool:
    """Return True if the options declare writers that append to log files of the same file groups without a
    conflict."""
    return opts.get_typed(options.CONCURRENCY_MODE) is ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL


def has_several_writers(opts: Options) -> bool:
    """Return True if the options declare concurrent writers."""
    return opts.get_typed(options.CONCURRENCY_MODE) is not ConcurrencyMode.SINGLE_WRITER


def failed_writes_policy(opts: Options) -> FailedWritesPolicy:
    """Return the policy for failed writes; with several writers the default is LAZY."""
    if not opts.is_set(options.FAILED_WRITES_POLICY) and has_several_writers(opts):
        return FailedWritesPolicy.LAZY
    return opts.get_typed(options.FAILED_WRITES_POLICY)
