"""What runs in processes that are killed: a write by the virtual machine of the session, or a service in threads."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any, Protocol

from pyspark.sql import SparkSession

from pyhudi import register_merger
from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage.local_storage import LocalStorage
from tests.fault_injection import WRITES
from tests.random_sequences.table_kinds import JoiningTags


class Work(Protocol):
    """Something to do, after preparations during which the process is not killed."""

    def prepare(self) -> None: ...
    def __call__(self) -> None: ...


def run(target: Work, effect: int | None, started: Event) -> None:
    """Run ``target``, and kill this process before or after its ``effect``-th change of the storage (None: never)."""
    target.prepare()
    if effect is not None:
        kill_at(effect)
    started.set()
    target()


def kill_at(effect: int) -> None:
    """Kill this process at a change of files: odd ones after, even ones before they take effect."""
    left = [(effect + 1) // 2]

    @contextlib.contextmanager
    def counted() -> Iterator[None]:
        left[0] -= 1
        if left[0] == 0 and effect % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            with counted():
                return change(*args, **more)

        return call

    for name in (*WRITES, "open_output"):
        if hasattr(LocalStorage, name):
            setattr(LocalStorage, name, watched(getattr(LocalStorage, name)))


@dataclass
class SparkWrite:
    """An upsert of a Parquet file by a Python process that shares the virtual machine of the session, whose tasks go on
    when the process is dead."""

    port: int
    secret: str
    path: str
    rows: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, spark: SparkSession, path: str, rows: str, options: Mapping[str, str]) -> SparkWrite:
        """Return a write by the virtual machine of a session."""
        gateway = spark.sparkContext._gateway.gateway_parameters
        return cls(gateway.port, gateway.auth_token, path, rows, options)

    def prepare(self) -> None:
        """Connect to the virtual machine."""
        register_merger(JoiningTags())
        self._spark = attached_session(self.port, self.secret)

    def __call__(self) -> None:
        write(self._spark.read.parquet(self.rows), self.path, self.options, "append")


def attached_session(port: int, secret: str) -> SparkSession:
    """Return a session of the virtual machine that another process has started."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    gateway = launch_gateway()
    jvm = gateway.jvm
    context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    python = SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.getConf()))
    return SparkSession(python, jvm.org.apache.spark.sql.SparkSession.builder().getOrCreate())


@dataclass
class Service:
    """A call of a service in threads, without Spark."""

    path: str
    options: Mapping[str, str]
    name: str
    arguments: tuple[Any, ...]
    more: dict[str, str]

    def prepare(self) -> None:
        """Do nothing."""

    def __call__(self) -> None:
        services = HudiTable.for_path(self.path, self.options).services
        getattr(services, self.name)(*self.arguments, self.more)
