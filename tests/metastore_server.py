"""Hive metastores for tests: one in this process, in memory, and a real one from the jars that PySpark ships."""

from __future__ import annotations

import copy
import itertools
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pymetastore.hive_metastore import ttypes
from pymetastore.hive_metastore.ThriftHiveMetastore import Processor
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from pyhudi.hive_metastore.partition_names import partition_name
from pyhudi.spark.java_runtime import ensure_java

_READS = ("get_", "show_", "set_ugi", "heartbeat")


class FakeMetastore:
    """Requests that pyhudi sends, answered from memory as a metastore of Hive 2.3 answers them.

    Attributes:
        writes: Names of the requests that changed something, in order.
        fail: Errors with which requests are answered, by name.
        meanwhile: Functions that answer requests in place of the methods of the same names.
        writes_left: Number of requests that may still change something; later ones are not answered, as if the client
            had died. None: all.
    """

    def __init__(self) -> None:
        self.databases: dict[str, ttypes.Database] = {"default": ttypes.Database(name="default")}
        self.tables: dict[tuple[str, str], ttypes.Table] = {}
        self.partitions: dict[tuple[str, str], dict[str, ttypes.Partition]] = {}
        self.locks: dict[int, ttypes.ShowLocksResponseElement] = {}
        self.writes: list[str] = []
        self.fail: dict[str, Exception] = {}
        self.meanwhile: dict[str, Callable[..., Any]] = {}
        self.writes_left: int | None = None
        self._ids = itertools.count(1)
        self._guard = threading.RLock()

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name.startswith("_") or not callable(found):
            return found

        def answered(*arguments: Any) -> Any:
            if name in self.meanwhile:  # without the guard, as it may send requests itself
                return self.meanwhile[name](*arguments)
            with self._guard:
                if name in self.fail:
                    raise self.fail[name]
                changes = not name.startswith(_READS)
                if changes and self.writes_left is not None:
                    if not self.writes_left:
                        raise TTransportException(message="the client is dead")
                    self.writes_left -= 1
                answer = found(*arguments)
                if changes:
                    self.writes.append(name)
                return copy.deepcopy(answer)

        return answered

    # --- databases and tables ----------------------------------------------------------------------------------------

    def set_ugi(self, user: str, groups: list[str]) -> list[str]:
        return [user, *groups]

    def get_database(self, name: str) -> ttypes.Database:
        if name not in self.databases:
            raise ttypes.NoSuchObjectException(name)
        return self.databases[name]

    def create_database(self, database: ttypes.Database) -> None:
        if database.name in self.databases:
            raise ttypes.AlreadyExistsException(database.name)
        self.databases[database.name] = database

    def get_table_req(self, request: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        return ttypes.GetTableResult(table=self._table(request.dbName, request.tblName))

    def create_table(self, table: ttypes.Table) -> None:
        key = (table.dbName.lower(), table.tableName.lower())
        if key in self.tables:
            raise ttypes.AlreadyExistsException(f"{key} exists")
        table.dbName, table.tableName = key
        self._store(key, table)
        self.partitions[key] = {}

    def alter_table_with_environment_context(
        self, database: str, name: str, table: ttypes.Table, context: ttypes.EnvironmentContext
    ) -> None:
        self._table(database, name)
        key = (database, name)
        self._store(key, table)
        if (context.properties or {}).get("CASCADE") == "true":
            for partition in self.partitions[key].values():
                partition.sd.cols = table.sd.cols

    def drop_table(self, database: str, name: str, delete: bool) -> None:
        assert not delete
        self._table(database, name)
        del self.tables[database, name], self.partitions[database, name]

    def _table(self, database: str, name: str) -> ttypes.Table:
        key = (database.lower(), name.lower())
        if key not in self.tables:
            raise ttypes.NoSuchObjectException(f"{key} table not found")
        return self.tables[key]

    def _store(self, key: tuple[str, str], table: ttypes.Table) -> None:
        table.parameters = {**table.parameters, "transient_lastDdlTime": str(int(time.time()))}
        self.tables[key] = table

    # --- partitions --------------------------------------------------------------------------------------------------

    def get_partition_names(self, database: str, name: str, limit: int) -> list[str]:
        assert limit == -1
        self._table(database, name)
        return sorted(self.partitions[database, name])

    def get_partitions_by_names(self, database: str, name: str, names: list[str]) -> list[ttypes.Partition]:
        stored = self.partitions[database, name]
        return [stored[one] for one in names if one in stored]

    def add_partitions_req(self, request: ttypes.AddPartitionsRequest) -> ttypes.AddPartitionsResult:
        stored = self.partitions[request.dbName, request.tblName]
        for partition in request.parts:
            stored.setdefault(self._name(request.dbName, request.tblName, partition.values), partition)
        return ttypes.AddPartitionsResult()

    def alter_partitions(self, database: str, name: str, partitions: list[ttypes.Partition]) -> None:
        for partition in partitions:
            key = self._name(database, name, partition.values)
            assert key in self.partitions[database, name]
            self.partitions[database, name][key] = partition

    def drop_partition(self, database: str, name: str, values: list[str], delete: bool) -> bool:
        assert not delete
        if self.partitions[database, name].pop(self._name(database, name, values), None) is None:
            raise ttypes.NoSuchObjectException(str(values))
        return True

    def _name(self, database: str, table: str, values: list[str]) -> str:
        columns = [column.name for column in self.tables[database, table].partitionKeys]
        return partition_name(columns, values)

    # --- locks -------------------------------------------------------------------------------------------------------

    def lock(self, request: ttypes.LockRequest) -> ttypes.LockResponse:
        component, lock_id = request.component[0], next(self._ids)
        assert component.operationType != ttypes.DataOperationType.UNSET
        self.locks[lock_id] = ttypes.ShowLocksResponseElement(
            lockid=lock_id,
            dbname=component.dbname.lower(),
            tablename=component.tablename.lower(),
            state=ttypes.LockState.WAITING,
            user=request.user,
            hostname=request.hostname,
            agentInfo=request.agentInfo,
        )
        return self._state(lock_id)

    def check_lock(self, request: ttypes.CheckLockRequest) -> ttypes.LockResponse:
        return self._state(request.lockid)

    def unlock(self, request: ttypes.UnlockRequest) -> None:
        if self.locks.pop(request.lockid, None) is None:
            raise ttypes.NoSuchLockException(str(request.lockid))

    def heartbeat(self, request: ttypes.HeartbeatRequest) -> None:
        if request.lockid not in self.locks:
            raise ttypes.NoSuchLockException(str(request.lockid))

    def show_locks(self, request: ttypes.ShowLocksRequest) -> ttypes.ShowLocksResponse:
        del request  # a metastore of Hive 2.3 filters, an older one does not
        return ttypes.ShowLocksResponse(locks=list(self.locks.values()))

    def _state(self, lock_id: int) -> ttypes.LockResponse:
        if lock_id not in self.locks:
            raise ttypes.NoSuchLockException(str(lock_id))
        mine = self.locks[lock_id]
        rivals = [one for one in self.locks.values() if (one.dbname, one.tablename) == (mine.dbname, mine.tablename)]
        if all(one.lockid >= lock_id for one in rivals):
            mine.state = ttypes.LockState.ACQUIRED
        return ttypes.LockResponse(lockid=lock_id, state=mine.state)


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        transport = TSocket()
        transport.setHandle(self.request)
        protocol = TBinaryProtocol(TBufferedTransport(transport))
        try:
            while True:
                self.server.processor.process(protocol, protocol)  # type: ignore[attr-defined]
        except (TTransportException, OSError):
            return


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def fake_metastore() -> Iterator[tuple[str, FakeMetastore]]:
    """Run a metastore in memory; give its URI and its state."""
    state = FakeMetastore()
    with _Server(("127.0.0.1", 0), _Connection) as server:
        server.processor = Processor(state)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"thrift://127.0.0.1:{server.server_address[1]}", state
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def hive_metastore(folder: Path, *, with_locks: bool = False) -> Iterator[str]:
    """Run the metastore of Hive 2.3.9 with a Derby database in a folder; give its URI.

    With locks, it is started twice: only in Hive's own test mode does a metastore make the tables of locks, and in this
    mode it refuses the requests of older clients.
    """
    if with_locks:
        with _running(folder, {"hive.in.test": "true"}) as uri:
            _make_lock_tables(uri)
    with _running(folder, {}) as uri:
        yield uri


@contextmanager
def _running(folder: Path, more: dict[str, str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.server.min.threads": "4",
        "hive.compactor.initiator.on": "false",
        "hive.async.log.enabled": "false",
        **more,
    }
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    hive = [part for key, value in settings.items() for part in ("--hiveconf", f"{key}={value}")]
    derby = f"-Dderby.stream.error.file={folder}/derby.log"
    with (folder / "metastore.log").open("ab") as log:
        command = [ensure_java().home / "bin/java", "-Xmx384m", "-XX:TieredStopAtLevel=1", derby, "-cp", jars, main]
        process = subprocess.Popen([*command, "-p", str(port), *hive], stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(port, process, folder / "metastore.log")
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        assert process.poll() is None, log.read_text(errors="replace")[-4000:]
        try:
            with closing(socket.create_connection(("127.0.0.1", port), 1)):
                return
        except OSError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _make_lock_tables(uri: str) -> None:
    from pyhudi.hive_metastore.metastore_address import MetastoreAddress
    from pyhudi.hive_metastore.metastore_client import MetastoreClient
    from pyhudi.hive_metastore.metastore_locks import MetastoreLocks

    locks = MetastoreLocks(MetastoreClient(MetastoreAddress.parse(uri)), "default", "t", "host", "test")
    locks.release(locks.request()[0])
    locks.close()
