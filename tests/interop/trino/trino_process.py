"""Trino in a process of its own, with a catalog ``hudi`` of the tables in a Hive metastore."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.jars import ROOT

JAVA = 25
"""Oldest version of Java that runs Trino 483."""
_HERE = Path(__file__).parent
_QUERY_SECONDS = 120
_ZONED = "+00:00"


class TrinoError(Exception):
    """Trino failed a statement; the message is its chain of causes."""


class Trino:
    """One Trino that reads the tables of a metastore. Use as a context manager.

    Args:
        java: Home of a Java that runs it.
        metastore: URI of the metastore.
    """

    def __init__(self, java: Path, metastore: str) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="trino-")
        self._log = Path(self._scratch.name) / "log"
        properties = ("hive.metastore=thrift", f"hive.metastore.uri={metastore}")
        memory = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-modules=jdk.incubator.vector")
        program = ("-cp", _class_path(java), str(_HERE / "TrinoQueries.java"))
        self._process = subprocess.Popen(
            [str(java / "bin" / "java"), *memory, *program, *properties],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("wb"),
            text=True,
            bufsize=1,
        )
        assert self._answer() == {"ready": True}

    def __enter__(self) -> Trino:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._scratch.cleanup()

    def rows(self, statement: str) -> list[list[Any]]:
        """Return the rows of a statement: numbers, and texts of other values."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        answer = self._answer()
        if "error" in answer:
            raise TrinoError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def table(self, name: str, schema: pa.Schema, where: str = "TRUE") -> pa.Table:
        """Return the rows of a synced table for which a condition is true, with the types of a schema."""
        columns = ", ".join(f'"{column.lower()}"' for column in schema.names)
        rows = self.rows(f'SELECT {columns} FROM "{name}" WHERE {where}')
        cells = [[_value(row[place], field.type) for row in rows] for place, field in enumerate(schema)]
        return pa.table([pa.array(cell, field.type) for cell, field in zip(cells, schema, strict=True)], schema=schema)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        watch = threading.Timer(_QUERY_SECONDS, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        if not line:
            raise TrinoError(f"ended or was silent:\n{self._log.read_text(errors='replace')[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def find_java() -> Path | None:
    """Return the home of a Java that runs Trino: ``PYHUDI_TRINO_JAVA_HOME``, ``JAVA_HOME``, or one of the system."""
    named = [os.environ[name] for name in ("PYHUDI_TRINO_JAVA_HOME", "JAVA_HOME") if name in os.environ]
    homes = [*map(Path, named), *sorted(Path("/usr/lib/jvm").glob("*"))]
    return next((home for home in homes if _java_version(home) >= JAVA), None)


def _java_version(home: Path) -> int:
    release = home / "release"
    found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE) if release.is_file() else None
    return int(found[1]) if found else 0


def has_maven() -> bool:
    """Return True if Maven can fetch Trino."""
    return shutil.which("mvn") is not None


def _class_path(java: Path) -> str:
    """Return the class path of Trino, which Maven fetches at the first call, some 440 jars."""
    kept = ROOT / ".cache" / "trino" / "class_path"
    pom = _HERE / "pom.xml"
    if not kept.exists() or kept.stat().st_mtime < pom.stat().st_mtime:
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={kept}"]
        subprocess.run(command, check=True, env={**os.environ, "JAVA_HOME": str(java)})
    return kept.read_text().strip()


def _value(raw: Any, kind: pa.DataType) -> Any:
    """Return a value of an Arrow type from Trino's text of it."""
    if raw is None:
        return None
    if pa.types.is_timestamp(kind):
        assert raw.endswith("000"), raw  # nanoseconds
        return dt.datetime.fromisoformat(raw[:-3] + (_ZONED if kind.tz else ""))
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(raw)
    if pa.types.is_decimal(kind):
        return Decimal(raw)
    if pa.types.is_binary(kind):
        return base64.b64decode(raw)
    if pa.types.is_floating(kind):
        return float(raw)
    if pa.types.is_list(kind):
        return [_value(item, kind.value_type) for item in raw]
    if pa.types.is_map(kind):
        return [(_value(key, kind.key_type), _value(item, kind.item_type)) for key, item in raw.items()]
    if pa.types.is_struct(kind):
        return {field.name: _value(item, field.type) for field, item in zip(kind, raw, strict=True)}
    return raw
