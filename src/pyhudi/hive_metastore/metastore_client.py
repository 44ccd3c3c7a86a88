"""Connection to a Hive metastore, with actionable error messages."""

from __future__ import annotations

import getpass
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pyhudi.errors import AlreadyInCatalogError, CatalogError, NotInCatalogError, RefusedByCatalogError, SetupError
from pyhudi.hive_metastore.metastore_address import MetastoreAddress

if TYPE_CHECKING:
    from pymetastore.hive_metastore.ThriftHiveMetastore import Client

T = TypeVar("T")

_UNKNOWN_METHOD = 1
_log = logging.getLogger(__name__)


class UnknownMethodError(CatalogError):
    """The metastore is of a release that does not know the request."""


class MetastoreClient:
    """Client of one metastore, for one thread at a time. It connects at the first request.

    Args:
        address: Servers of the metastore.

    Raises:
        SetupError: The package pymetastore is not installed.
    """

    def __init__(self, address: MetastoreAddress) -> None:
        try:
            import pymetastore  # noqa: F401
        except ImportError as error:
            raise SetupError("a Hive metastore requires the package pymetastore: pip install 'pyhudi[hive]'") from error
        self._address = address
        self._client: Client | None = None
        self._transport: Any = None

    def __str__(self) -> str:
        return str(self._address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def send(self, request: Callable[[Client], T]) -> T:
        """Send a request. After an error of the connection, the next request makes a new one.

        Raises:
            NotInCatalogError: There is no such thing.
            AlreadyInCatalogError: There is one already.
            UnknownMethodError: The metastore does not know the request.
            CatalogError: The metastore does not answer, or refused the request.
        """
        from thrift.protocol.TProtocol import TProtocolException
        from thrift.Thrift import TException
        from thrift.transport.TTransport import TTransportException

        try:
            return request(self._connected())
        except (TTransportException, TProtocolException, OSError) as error:
            self.close()
            raise CatalogError(
                f"{self} does not answer ({_reason(error)}); check that it runs, and that it needs neither TLS nor "
                "Kerberos, which are not supported"
            ) from error
        except TException as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> CatalogError:
        """Return the error for a response of the metastore."""
        from pymetastore.hive_metastore import ttypes
        from thrift.Thrift import TApplicationException

        reason = f"{type(error).__name__}: {_reason(error)}"
        if isinstance(error, ttypes.NoSuchObjectException | ttypes.UnknownTableException | ttypes.NoSuchLockException):
            return NotInCatalogError(f"{self} has no such entry ({reason})")
        if isinstance(error, ttypes.AlreadyExistsException):
            return AlreadyInCatalogError(f"{self} has such an entry already ({reason})")
        if isinstance(error, TApplicationException) and error.type == _UNKNOWN_METHOD:
            return UnknownMethodError(f"{self} does not know a request ({reason})")
        return RefusedByCatalogError(f"{self} refused a request ({reason})")

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> Client:
        """Connect to the first server that answers."""
        from thrift.transport.TTransport import TTransportException

        failures = []
        for host, port in self._address.hosts:
            try:
                return self._open(host, port)
            except (TTransportException, OSError) as error:
                self.close()
                failures.append(error)
        raise failures[-1]

    def _open(self, host: str, port: int) -> Client:
        from pymetastore.hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport

        socket = TSocket(host, port)
        socket.setTimeout(round(self._address.timeout_s * 1000))
        self._transport = TBufferedTransport(socket)
        self._transport.open()
        client = Client(TBinaryProtocolAccelerated(self._transport))
        _introduce(client)
        return client

    def close(self) -> None:
        """Close the connection."""
        transport, self._transport, self._client = self._transport, None, None
        if transport is not None:
            transport.close()


def _introduce(client: Client) -> None:
    """Tell the metastore the user, as Hive's own client does; servers that do not know the request need no user."""
    from thrift.Thrift import TApplicationException

    user = current_user()
    try:
        client.set_ugi(user, [user])
    except TApplicationException as error:
        _log.info("the Hive metastore was not told the user: %s", error)


def current_user() -> str:
    """Return the name of the user in Hadoop: ``HADOOP_USER_NAME``, or that of the process."""
    named = os.environ.get("HADOOP_USER_NAME")
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the process has a number for which there is no user
        return "unknown"


def _reason(error: Exception) -> str:
    return str(getattr(error, "message", None) or error or type(error).__name__).strip()
