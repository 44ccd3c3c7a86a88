"""Factory of lock providers, and of time generators that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from pyhudi.config import Options, options
from pyhudi.errors import InvalidOptionError
from pyhudi.storage import InProcessLock, Storage, host_lock, is_remote, resolved_root
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.concurrency_mode import has_several_writers
from pyhudi.transaction.locks.dynamodb.dynamodb_lock import DynamoDBBasedLockProvider
from pyhudi.transaction.locks.file_system_lock import FileSystemBasedLockProvider
from pyhudi.transaction.locks.hive_metastore_lock import HiveMetastoreBasedLockProvider
from pyhudi.transaction.locks.lock_provider import LocalLockProvider, LockProvider, LockRetryPolicy
from pyhudi.transaction.locks.storage_based_lock import StorageBasedLockProvider
from pyhudi.transaction.locks.zookeeper_lock import ZookeeperBasedLockProvider

_PACKAGES = (
    "org.apache.hudi.client.transaction.lock.",
    "org.apache.hudi.aws.transaction.lock.",
    "org.apache.hudi.hive.transaction.lock.",
    "org.apache.hudi.",
)


_Factory: TypeAlias = Callable[[Storage, Options, LockRetryPolicy], LockProvider]


def _local_lock(storage: Storage, _: Options, retry_policy: LockRetryPolicy) -> LockProvider:
    return LocalLockProvider(host_lock(storage, ""), storage.root, retry_policy)


def _in_process_lock(storage: Storage, _: Options, retry_policy: LockRetryPolicy) -> LockProvider:
    return LocalLockProvider(InProcessLock(resolved_root(storage.root)), storage.root, retry_policy)


_FACTORIES: Mapping[str, _Factory] = {
    "": _local_lock,
    "InProcessLockProvider": _in_process_lock,
    "FileSystemBasedLockProvider": FileSystemBasedLockProvider.from_options,
    "StorageBasedLockProvider": StorageBasedLockProvider.from_options,
    "ZookeeperBasedLockProvider": ZookeeperBasedLockProvider.from_options,
    "ZookeeperBasedImplicitBasePathLockProvider": partial(ZookeeperBasedLockProvider.from_options, implicit=True),
    "DynamoDBBasedLockProvider": DynamoDBBasedLockProvider.from_options,
    "DynamoDBBasedImplicitPartitionKeyLockProvider": partial(DynamoDBBasedLockProvider.from_options, implicit=True),
    "HiveMetastoreBasedLockProvider": HiveMetastoreBasedLockProvider.from_options,
}
"""Factories by the names of Apache Hudi's classes; empty: the lock of a table without a lock provider."""


def make_lock_provider(storage: Storage, table_options: Mapping[str, str]) -> LockProvider:
    """Return the lock of a table according to its options, with a new owner. By default it is the widest lock that the
    options allow: several writers with an address of ZooKeeper have their locks there, as in Apache Hudi 0.15.

    Args:
        storage: Storage of the table.
        table_options: Options of the lock.

    Raises:
        ConfigError: The lock provider is not supported, or its options are not valid.
    """
    opts = Options.parse(table_options)
    named = _supported_name(opts)
    if not named and has_several_writers(opts):
        if opts.is_set(options.LOCK_ZOOKEEPER_URL):
            named = "ZookeeperBasedLockProvider"
        elif is_remote(storage):
            named = "StorageBasedLockProvider"
    return _FACTORIES[named](storage, opts, LockRetryPolicy.from_options(opts))


def check_lock_provider(table_options: Mapping[str, str]) -> None:
    """Check that the lock provider that options name, if any, is supported. Its own options, which may be given later,
    are not checked.

    Args:
        table_options: Options of the lock.

    Raises:
        ConfigError: It is not supported; the error of `make_lock_provider`.
    """
    _supported_name(Options.parse(table_options))


def _supported_name(opts: Options) -> str:
    """Return the lock provider that options name, without its package; empty if they name none."""
    named = opts.get_typed(options.LOCK_PROVIDER) or ""
    short = named
    for package in _PACKAGES:
        short = short.removeprefix(package)
    if short not in _FACTORIES:
        raise InvalidOptionError(options.LOCK_PROVIDER.key, named, ", ".join(name for name in _FACTORIES if name))
    return short


def make_time_generator(storage: Storage, opts: Options, timezone: str) -> TimeGenerator:
    """Return the time generator of a table.

    Args:
        storage: Storage of the table.
        opts: Options of the lock and the clock skew.
        timezone: ``hoodie.table.timeline.timezone``.
    """
    lock = make_lock_provider(storage, opts)
    return TimeGenerator(storage, opts, timezone, lock=lock, shares_clock=_shares_clock(lock, opts))


def _shares_clock(lock: LockProvider, opts: Options) -> bool:
    """Return True if a lock excludes writers of this machine only, and there are no others to wait for."""
    has_clock_skew = opts.is_set(options.TIME_GENERATOR_MAX_CLOCK_SKEW_MS)
    return isinstance(lock, LocalLockProvider) and not has_several_writers(opts) and not has_clock_skew
