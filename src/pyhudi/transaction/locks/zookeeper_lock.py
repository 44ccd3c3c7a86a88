"""Lock in ZooKeeper, as of Apache Hudi's ``ZookeeperBasedLockProvider``.

Each contender creates a sequential node below the path of the lock; the one with the lowest number holds it. Nodes are
ephemeral: those of a process that was killed disappear with its session. The nodes are named as those of Apache
Curator's ``InterProcessMutex``, which Apache Hudi uses, so that writers of both exclude each other.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Self

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, LockError, SetupError
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.transaction.locks.base_path_hash import base_path_hash
from pyhudi.transaction.locks.lock_provider import LockProvider, LockRetryPolicy, writer_name

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock

_IMPLICIT_KEY = "lock_key"
_log = logging.getLogger(__name__)


class ZookeeperBasedLockProvider(LockProvider):
    """Lock at a path of ZooKeeper. An owner has a session while it holds the lock or waits for it.

    Args:
        hosts: Addresses of the servers, ``host:port,…``, optionally with a root path.
        path: Path of the lock.
        session_s: Seconds after which the servers end the session of a process that no longer responds.
        connection_s: Seconds to wait for a connection.
        retry_policy: Time limits.

    Raises:
        SetupError: The package kazoo is not installed.
    """

    def __init__(
        self,
        hosts: str,
        path: str,
        *,
        session_s: float = 60.0,
        connection_s: float = 15.0,
        retry_policy: LockRetryPolicy | None = None,
    ) -> None:
        super().__init__(retry_policy)
        try:
            import kazoo  # noqa: F401
        except ImportError as error:
            raise SetupError("locks in ZooKeeper require the package kazoo: pip install 'pyhudi[zookeeper]'") from error
        self._hosts, self._path = hosts, path
        self._session_s, self._connection_s = session_s, connection_s
        self._client: KazooClient | None = None
        self._lock: Lock | None = None
        self._lost = False

    @classmethod
    def from_options(
        cls, storage: Storage, opts: Options, retry_policy: LockRetryPolicy, *, implicit: bool = False
    ) -> Self:
        """Create the lock from the options ``hoodie.write.lock.zookeeper.*``.

        Args:
            storage: Storage of the table.
            opts: Options of the lock.
            retry_policy: Time limits.
            implicit: The path follows from that of the table (``ZookeeperBasedImplicitBasePathLockProvider``).

        Raises:
            ConfigError: The address or the path is missing.
        """
        path = implicit_path(storage) if implicit else _path(storage, opts)
        return cls(
            _hosts(opts),
            path,
            session_s=opts.get_typed(options.LOCK_ZOOKEEPER_SESSION_TIMEOUT_MS) / 1000,
            connection_s=opts.get_typed(options.LOCK_ZOOKEEPER_CONNECTION_TIMEOUT_MS) / 1000,
            retry_policy=retry_policy,
        )

    @property
    def held(self) -> bool:
        return self._lock is not None and not self._lost

    def ensure_held(self) -> None:
        """Ask the servers whether the lock is held: a session may have ended while there was no connection."""
        super().ensure_held()
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        assert self._client is not None
        assert self._lock is not None
        try:
            # Requests wait as long as there is no connection.
            answer = self._client.exists_async(f"{self._path}/{self._lock.node}")
            result = answer.get(timeout=self._connection_s)
        except (KazooException, KazooTimeoutError) as error:
            raise LockError(
                f"{self._name()} could not be checked ({error!r}), so nothing may be committed; write again when "
                "ZooKeeper responds"
            ) from error
        if result is None or result.owner_session_id != self._client.client_id[0]:
            self._lost = True
            super().ensure_held()

    def describe(self) -> str:
        from kazoo.exceptions import KazooException

        if self._client is None:
            return self._name()
        try:
            contenders = _curator_lock()(self._client, self._path).contenders()
        except (KazooException, UnicodeDecodeError) as error:
            return f"{self._name()} (unreadable, {error!r})"
        return f"{self._name()} (held by: {contenders[0]})" if contenders else self._name()

    def _name(self) -> str:
        return f"lock {self._path!r} of ZooKeeper at {self._hosts}"

    @property
    def cure(self) -> str:
        return "wait for the other writer; if it no longer runs, the lock is released when its session ends"

    def try_acquire(self) -> bool:
        return self._acquire(None)

    def acquire(self, timeout: float) -> bool:
        return self._acquire(timeout)

    def _acquire(self, timeout: float | None) -> bool:
        """Acquire the lock within some seconds, or only if it is free."""
        from kazoo.exceptions import KazooException, LockTimeout

        if self._lock is not None:
            return False
        client = self._connected()
        lock = _curator_lock()(client, self._path, writer_name())
        try:
            acquired = lock.acquire(blocking=bool(timeout), timeout=timeout or None)
        except LockTimeout:
            acquired = False
        except KazooException as error:
            self._disconnect()
            raise LockError(
                f"{self._name()} could not be acquired: {error!r}; check that ZooKeeper responds and that the path may "
                "be written"
            ) from error
        if acquired:
            self._lock = lock
        return bool(acquired)

    def _connected(self) -> KazooClient:
        """Return the client of this owner, with a session."""
        if self._client is not None and not self._lost:
            return self._client
        from kazoo.client import KazooClient
        from kazoo.handlers.threading import KazooTimeoutError

        self._disconnect()
        # Without a connection for as long as a session lives, its requests fail, which would otherwise wait.
        retry = {"max_tries": -1, "max_delay": 5.0, "deadline": self._session_s}
        client = KazooClient(self._hosts, timeout=self._session_s, connection_retry=retry)
        client.add_listener(self._session_changed)
        try:
            client.start(timeout=self._connection_s)
        except KazooTimeoutError as error:
            client.close()
            raise LockError(
                f"{self._name()} could not be acquired: no connection within {self._connection_s:g} s; check "
                f"{options.LOCK_ZOOKEEPER_URL.key} and that ZooKeeper runs"
            ) from error
        self._client = client
        return client

    def _session_changed(self, state: str) -> None:
        from kazoo.protocol.states import KazooState

        if state == KazooState.LOST and self._lock is not None:
            _log.warning("the session that held %s has ended", self._name())
            self._lost = True

    def release(self) -> None:
        self._lock = None
        self._disconnect()

    def _disconnect(self) -> None:
        """End the session, and the nodes of this owner with it. Errors are logged: they must not look like those of the
        protected step, or hide them, and the servers end the session when it expires."""
        client, self._client, self._lost = self._client, None, False
        if client is None:
            return
        for end in (client.stop, client.close):
            try:
                end()
            except Exception as error:
                _log.warning(
                    "could not end the session of %s (%r); the servers end it within %g s",
                    *(self._name(), error, self._session_s),
                )


@cache
def _curator_lock() -> type[Lock]:
    from kazoo.recipe.lock import Lock

    class CuratorLock(Lock):  # type: ignore[misc]
        """Lock whose nodes are named as those of Apache Curator."""

        _NODE_NAME = "-lock-"
        _EXCLUDE_NAMES: ClassVar = ["-lock-"]

    return CuratorLock


def implicit_path(storage: Storage) -> str:
    """Return the path of the lock of a table, as of Apache Hudi's ``ZookeeperBasedImplicitBasePathLockProvider``."""
    return f"/tmp/{base_path_hash(storage)}/{_IMPLICIT_KEY}"


def _path(storage: Storage, opts: Options) -> str:
    base = opts.get_typed(options.LOCK_ZOOKEEPER_BASE_PATH)
    if not base:
        raise ConfigError(
            f"locks in ZooKeeper require {options.LOCK_ZOOKEEPER_BASE_PATH.key}, the parent path of locks; set it, or "
            "use ZookeeperBasedImplicitBasePathLockProvider, which derives it from the path of the table"
        )
    key = opts.get_typed(options.LOCK_ZOOKEEPER_LOCK_KEY) or opts.get_typed(options.TABLE_NAME)
    key = key or TableConfig.load(storage).name
    return "/" + "/".join(part for part in f"{base}/{key}".split("/") if part)


def _hosts(opts: Options) -> str:
    """Return the addresses of the servers. The port option counts for those without a port."""
    url = opts.get_typed(options.LOCK_ZOOKEEPER_URL)
    if not url:
        raise ConfigError(f"locks in ZooKeeper need {options.LOCK_ZOOKEEPER_URL.key}, the addresses of the servers")
    port = opts.get_typed(options.LOCK_ZOOKEEPER_PORT)
    hosts, slash, root = url.partition("/")
    named = [host.strip() for host in hosts.split(",")]
    with_port = [f"{host}:{port}" if port and not _has_port(host) else host for host in named]
    return ",".join(with_port) + slash + root


def _has_port(host: str) -> bool:
    return host.rpartition("]")[2].count(":") > 0
