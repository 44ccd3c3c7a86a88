"""Apache Hudi itself, and other independent readers, as references for tests.

``Oracle`` runs one release in a separate process, which is started once, because a Java virtual machine takes seconds
to start. Rows
are passed as Arrow tables.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from bench.jars import class_path

from tests.sessions import SMALL, SMALL_FILTERS

RELEASES = ("0.15.0", "1.0.2", "1.2.0")
"""Releases with which every kind of test is done."""
OTHER_RELEASES = ("1.1.1",)
"""Releases that write a table version of one in `RELEASES`; few tests name them."""
WRITER_OF_VERSION_9 = os.environ.get("PYHUDI_ORACLE_VERSION_9", RELEASES[-1])
"""Release that runs where tests name 1.2.0."""
START_SECONDS = 120
REQUEST_SECONDS = 180


class OracleError(Exception):
    """Apache Hudi refused or failed a request; the message is its chain of causes."""


@dataclass(frozen=True, slots=True)
class OracleInstant:
    """An instant as Apache Hudi's meta client returns it; ``completed`` is None before completion and always in
    0.15.0."""

    requested: str
    action: str
    state: str
    completed: str | None


class Oracle:
    """One release of Apache Hudi on pyspark 3.5. Use as a context manager."""

    def __init__(self, release: str, settings: Mapping[str, str] | None = None) -> None:
        if release not in (*RELEASES, *OTHER_RELEASES):
            raise ValueError(f"no such release here: {release!r}; known: {', '.join((*RELEASES, *OTHER_RELEASES))}")
        self.release = release
        self._scratch = tempfile.TemporaryDirectory(prefix=f"hudi-{release}-")
        self._folder = Path(self._scratch.name)
        self._count = itertools.count()
        self._log = self._folder / "worker.log"
        self._classes = self._folder / "classes"
        self._classes.mkdir()
        jars = class_path(f"hudi-{WRITER_OF_VERSION_9 if release == RELEASES[-1] else release}") + f":{self._classes}"
        conf = {
            **SMALL,
            "spark.master": "local[2]",
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            **SMALL_FILTERS,  # of SQL
            **(settings or {}),
        }
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        env.pop("SPARK_HOME", None)
        env["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {jars} pyspark-shell"
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("oracle_worker.py")), json.dumps(conf)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("wb"),
            text=True,
            bufsize=1,
            env=env,
            cwd=self._folder,
        )
        self.spark_version = self._answer(START_SECONDS)["ready"]

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and remove its scratch folder."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.cleanup()

    def write(
        self,
        path: Path | str,
        rows: pa.Table,
        options: Mapping[str, str],
        mode: str = "append",
        *,
        schema: str | None = None,
    ) -> None:
        """Write Arrow rows through ``df.write.format("hudi")``, in their order. ``schema``: Spark schema as JSON, for
        tests with required columns."""
        source = self._file("parquet")
        pq.write_table(rows, source)
        options = {**SMALL_FILTERS, **options}
        self._ask("write", path=str(path), rows=str(source), options=options, mode=mode, schema=schema)
        source.unlink()

    def read(
        self,
        path: Path | str,
        options: Mapping[str, str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """Read rows through ``spark.read.format("hudi")``; the order is Spark's. ``where`` is a SQL condition."""
        out = self._file("arrow")
        arguments = {"options": dict(options or {}), "columns": list(columns) if columns else None, "where": where}
        self._ask("read", path=str(path), out=str(out), **arguments)
        return self._load(out)

    def stream(
        self, path: Path | str, feed: Path | str, schema: str, checkpoint: Path | str, options: Mapping[str, str]
    ) -> None:
        """Write the JSON files of ``feed``, one a micro-batch, through ``writeStream.format("hudi")``."""
        where = {"path": str(path), "feed": str(feed), "checkpoint": str(checkpoint)}
        self._ask("stream", **where, schema=schema, options=dict(options))

    def add_class(self, source: str) -> None:
        """Compile a Java source, so that options can name its class."""
        self._ask("add_class", source=source, folder=str(self._classes))

    def sql(self, *statements: str) -> pa.Table:
        """Run SQL statements one after another; return the rows of the last."""
        out = self._file("arrow")
        self._ask("sql", statements=list(statements), out=str(out))
        return self._load(out)

    def show_commits(self, path: Path | str) -> pa.Table:
        """Return Apache Hudi's own ``show_commits``, newest first (0.15.0 supports it for catalog tables only, so one
        is created)."""
        name = f"t{next(self._count)}"
        try:
            return self.sql(
                f"CREATE TABLE {name} USING hudi LOCATION '{path}'",
                f"CALL show_commits(table => '{name}', limit => 1000)",
            )
        finally:
            self.sql(f"DROP TABLE IF EXISTS {name}")

    def timeline(self, path: Path | str) -> list[OracleInstant]:
        """Return the active timeline, oldest first."""
        return [OracleInstant(**instant) for instant in self._ask("timeline", path=str(path))]

    def metadata_partitions(self, path: Path | str) -> list[str]:
        """Return the partitions of the metadata table that are declared and usable."""
        return list(self._ask("metadata_partitions", path=str(path)))

    def index(
        self,
        path: Path | str,
        options: Mapping[str, str],
        *schedule: str,
        instant: str | None = None,
        run: bool = True,
    ) -> str:
        """Plan an index of these types (names of Hudi's enum), or take the plan of ``instant``, and execute it; return
        the instant."""
        arguments = {"options": dict(options), "schedule": list(schedule), "instant": instant, "run": run}
        return str(self._ask("index", path=str(path), **arguments))

    def define_index(
        self, path: Path | str, partition: str, using: str, column: str, options: Mapping[str, str]
    ) -> None:
        """Define an index without building it, as the first step of CREATE INDEX."""
        self._ask(
            "define_index", path=str(path), partition=partition, using=using, column=column, options=dict(options)
        )

    def _file(self, suffix: str) -> Path:
        return self._folder / f"{next(self._count)}.{suffix}"

    def _load(self, path: Path) -> pa.Table:
        with pa.OSFile(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        path.unlink()
        return table

    def _ask(self, op: str, **args: Any) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, "args": args}) + "\n")
        except BrokenPipeError:
            raise OracleError(self._last_words(f"{op}: the process is gone")) from None
        answer = self._answer(REQUEST_SECONDS)
        if "error" in answer:
            raise OracleError(f"Apache Hudi {self.release}, {op}: {answer['error']}")
        return answer["result"]

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        watch = threading.Timer(seconds, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        if not line:
            raise OracleError(self._last_words(f"ended or was silent for {seconds} s"))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self, what: str) -> str:
        log = self._log.read_text(errors="replace").splitlines()[-30:]
        return f"Apache Hudi {self.release}: {what}\n" + "\n".join(log)


def read_with_hudi_rs(path: Path | str, options: Mapping[str, str] | None = None) -> pa.Table:
    """Return the snapshot as hudi-rs reads it, an implementation that shares no code with Apache Hudi or pyhudi."""
    import hudi

    table = hudi.HudiTable(str(path), dict(options or {}))
    batches = table.read()
    return (
        pa.Table.from_batches(batches, batches[0].schema)
        if batches
        else table.get_schema_with_meta_fields().empty_table()
    )
