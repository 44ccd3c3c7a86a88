"""Steps of Apache Hudi itself, where it takes part: it reads the table, and writes to it in turns."""

from __future__ import annotations

from random import Random

from pyhudi.api.hudi_table import HudiTable
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.random_sequences.life import Life
from tests.random_sequences.steps import step
from tests.random_sequences.table_kinds import CUSTOM, FILLING, TableKind
from tests.random_sequences.write_steps import draw_upsert
from tests.rows import compare, encode_table

RELEASES = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
_COMPARED = ("num", "tag", "seq", "qty", "name")
_META = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_commit_time")


class Oracles:
    """Keeps one release running, the one that writes the version of the table."""

    def __init__(self) -> None:
        self._running: Oracle | None = None

    def of_version(self, version: int) -> Oracle:
        """Return the release of a table version, started if it is not running."""
        if self._running is None or self._running.release != RELEASES[version]:
            self.close()
            self._running = Oracle(RELEASES[version])
        return self._running

    def close(self) -> None:
        """End the running release."""
        if self._running is not None:
            self._running.close()
            self._running = None


def _can_share(kind: TableKind) -> bool:
    return kind.merging != CUSTOM


@step(4, _can_share, with_apache_hudi=True)
def they_read(life: Life, _: Random) -> None:
    """Compare the snapshot with that of Apache Hudi."""
    if life.theirs is None or life.model.version != life.kind.version:
        return
    theirs = life.theirs.read(life.path, {"hoodie.metadata.enable": "true"})
    ours = HudiTable.for_path(life.path).scan().to_arrow()
    columns = [*_COMPARED, *(_META[:2] if life.kind.merging in FILLING else _META)]
    compare(encode_table(theirs, columns), encode_table(ours, columns), columns)


@step(4, _can_share, with_apache_hudi=True)
def they_upsert(life: Life, rng: Random) -> None:
    """Let Apache Hudi upsert rows."""
    _write(life, rng, "upsert")


@step(1, _can_share, with_apache_hudi=True)
def they_delete(life: Life, rng: Random) -> None:
    """Let Apache Hudi delete records."""
    _write(life, rng, "delete")


def _write(life: Life, rng: Random, operation: str) -> None:
    if life.theirs is None or life.model.version != life.kind.version:
        return
    rows = draw_upsert(life, rng)
    upserted = operation == "upsert"
    records = life.model.upsert(rows) if upserted else life.model.delete(where for where, _ in rows)
    options = {key: value for key, value in life.write_options(operation).items() if not key.startswith("pyhudi.")}
    options |= {**PARALLELISM, "hoodie.write.auto.upgrade": "false"}
    if life.theirs.release == RELEASES[6]:
        del options["hoodie.write.table.version"], options["hoodie.write.auto.upgrade"]
    table, theirs = life.arrow(row for _, row in rows), life.theirs
    life.expect(lambda: theirs.write(life.path, table, options), records)
