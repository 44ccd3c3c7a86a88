"""Factory of lock providers, and of time generators that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, InvalidOptionError
from pyhudi.storage import InProcessLock, Storage, host_lock, is_remote, resolved_root
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.locks.dynamodb_lock import DynamoDBBasedLockProvider
from pyhudi.transaction.locks.file_system_lock import FileSystemBasedLockProvider
from pyhudi.transaction.locks.lock_provider import LocalLockProvider, LockProvider, LockRetryPolicy, has_several_writers
from pyhudi.transaction.locks.storage_based_lock import StorageBasedLockProvider
from pyhudi.transaction.locks.zookeeper_lock import ZookeeperBasedLockProvider

_HIVE = ".HiveMetastoreBasedLockProvider"
_PACKAGES = ("org.apache.hudi.client.transaction.lock.", "org.apache.hudi.aws.transaction.lock.", "org.apache.hudi.")


def make_lock_provider(storage: Storage, table_options: Mapping[str, str]) -> LockProvider:
    """Return the lock of a table according to its options, with a new owner. By default it is the widest lock that the
    options allow."""
    opts = Options.parse(table_options)
    retry_policy = LockRetryPolicy.from_options(opts)
    providers: dict[str, Callable[[], LockProvider]] = {
        "": lambda: LocalLockProvider(host_lock(storage, ""), storage.root, retry_policy),
        "InProcessLockProvider": lambda: LocalLockProvider(
            InProcessLock(resolved_root(storage.root)), storage.root, retry_policy
        ),
        "FileSystemBasedLockProvider": lambda: FileSystemBasedLockProvider.from_options(storage, opts, retry_policy),
        "StorageBasedLockProvider": lambda: StorageBasedLockProvider.from_options(storage, opts, retry_policy),
        "ZookeeperBasedLockProvider": lambda: ZookeeperBasedLockProvider.from_options(storage, opts, retry_policy),
        "ZookeeperBasedImplicitBasePathLockProvider": lambda: ZookeeperBasedLockProvider.from_options(
            storage, opts, retry_policy, implicit=True
        ),
        "DynamoDBBasedLockProvider": lambda: DynamoDBBasedLockProvider.from_options(storage, opts, retry_policy),
        "DynamoDBBasedImplicitPartitionKeyLockProvider": lambda: DynamoDBBasedLockProvider.from_options(
            storage, opts, retry_policy, implicit=True
        ),
    }
    named = opts.get_typed(options.LOCK_PROVIDER) or ""
    if not named and is_remote(storage) and has_several_writers(opts):
        named = "StorageBasedLockProvider"
    short = named
    for package in _PACKAGES:
        short = short.removeprefix(package)
    if f".{short}".endswith(_HIVE):
        raise _no_hive_metastore(named, storage)
    if short not in providers:
        raise InvalidOptionError(options.LOCK_PROVIDER.key, named, ", ".join(name for name in providers if name))
    return providers[short]()


def _no_hive_metastore(named: str, storage: Storage) -> ConfigError:
    instead = "StorageBasedLockProvider" if is_remote(storage) else "FileSystemBasedLockProvider"
    return ConfigError(
        f"{options.LOCK_PROVIDER.key}={named}: locks in the Hive metastore are not supported. Every writer of the "
        f"table has to use the same lock: set {instead}, which needs no other service, ZookeeperBasedLockProvider or "
        "DynamoDBBasedLockProvider for all of them"
    )


def make_time_generator(
    storage: Storage, opts: Options, timezone: str, lock: LockProvider | None = None
) -> TimeGenerator:
    """Return the time generator of a table.

    Args:
        storage: Storage of the table.
        opts: Options of the lock and the clock skew.
        timezone: ``hoodie.table.timeline.timezone``.
        lock: Lock of the table; None: that of its options (`make_lock_provider`).
    """
    lock = lock or make_lock_provider(storage, opts)
    return TimeGenerator(storage, opts, timezone, lock=lock, one_clock=_has_one_clock(lock, opts))


def _has_one_clock(lock: LockProvider, opts: Options) -> bool:
    """Return True if a lock excludes writers of this machine only, and there are no others to wait for."""
    has_clock_skew = opts.is_set(options.TIME_GENERATOR_MAX_CLOCK_SKEW_MS)
    return isinstance(lock, LocalLockProvider) and not has_several_writers(opts) and not has_clock_skew
