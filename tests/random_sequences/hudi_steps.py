"""Steps of Apache Hudi itself, where it takes part: it reads the table, and writes to it in turns."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from pyhudi.api.hudi_table import HudiTable
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.random_sequences.life import Life
from tests.random_sequences.service_steps import can_cluster
from tests.random_sequences.steps import step
from tests.random_sequences.table_kinds import BUCKETS, CUSTOM, EVENT_TIME, FILLING, TableKind
from tests.random_sequences.write_steps import draw_upsert
from tests.rows import compare, encode_table

RELEASES = {6: "0.15.0", 8: "1.0.2", 9: "1.2.0"}
_COMPARED = ("num", "tag", "seq", "qty", "name")
_OLDER_NAMES = {"hoodie.metadata.global.record.level.index.enable": "hoodie.metadata.record.index.enable"}
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
    """Whether Apache Hudi writes such tables right (`docs/format/core.md`, 10: 27 and 30), and all releases merge them
    in the same way (7.7)."""
    if kind.merging == CUSTOM or (kind.merge_on_read and kind.index == "RECORD_LEVEL_INDEX"):
        return False
    if kind.wide and kind.version < 9:  # times without a zone
        return False
    if kind.version < 9 and kind.merging in FILLING:
        return not kind.merge_on_read and not kind.flagged
    return kind.version > 6 or not kind.merge_on_read or kind.merging == EVENT_TIME


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


@step(1.5, lambda kind: _can_share(kind) and kind.version != 8, with_apache_hudi=True)
def they_serve(life: Life, rng: Random) -> None:
    """Let Apache Hudi compact, cluster or clean; 0.15.0 and 1.0.2 compact wrongly (`docs/format/core.md`, 10, 22)."""
    if life.theirs is None or life.model.version != life.kind.version:
        return
    calls = ["run_clean(table => '{}', retain_commits => 3, options => '{}')"]
    if life.kind.merge_on_read and life.kind.version > 6:
        calls += 2 * ["run_compaction(table => '{}', op => 'scheduleandexecute', options => '{}')"]
    if can_cluster(life.kind) and life.kind.index not in BUCKETS:
        calls += ["run_clustering(table => '{}', options => '{}')"]
    call = rng.choice(calls)
    given = {
        "hoodie.metadata.enable": str(life.kind.metadata).lower(),
        "hoodie.compact.inline.max.delta.commits": "1",
        **_older_names(life, life.kind.options),
    }
    kept = ("hoodie.metadata.", "hoodie.compact", "hoodie.index.type", "hoodie.bucket.")
    options = ",".join(f"{key}={value}" for key, value in given.items() if key.startswith(kept))
    name = f"theirs_{life.step}"
    life.finish_plans()
    life.theirs.sql(f"CREATE TABLE {name} USING hudi LOCATION '{life.path}'")
    try:
        life.theirs.sql("CALL " + call.format(name, options))
    finally:
        life.theirs.sql(f"DROP TABLE {name}")
    life.cleaned |= "run_clean" in call
    life.new_writes()
    life.forget_deletes()


def _older_names(life: Life, options: Mapping[str, str]) -> dict[str, str]:
    """Return options with the names that older releases know."""
    assert life.theirs is not None
    if life.theirs.release == RELEASES[9]:
        return dict(options)
    return {_OLDER_NAMES.get(key, key): value for key, value in options.items()}


def _write(life: Life, rng: Random, operation: str) -> None:
    if life.theirs is None or life.model.version != life.kind.version:
        return
    indexes = HudiTable.for_path(life.path).config.metadata_partitions
    if life.kind.merge_on_read and life.kind.has_buckets and "record_index" in indexes:
        return  # it does not tell the index of keys in log files: `docs/format/core.md`, 10, 28
    rows = draw_upsert(life, rng)
    if life.kind.merge_on_read:  # it finds records that log files have deleted, too: 24
        rows = [(where, row) for where, row in rows if where[0] not in life.model.deleted]
    if life.kind.moves:  # it writes the stored record again, as one of this commit: `docs/differences.md`, Writes
        rows = [(where, row) for where, row in rows if row["seq"] >= life.model.highest.get(where[0], 0)]
    if not rows:
        return
    upserted = operation == "upsert"
    records = life.model.upsert(rows) if upserted else life.model.delete(where for where, _ in rows)
    options = {key: value for key, value in life.write_options(operation).items() if not key.startswith("pyhudi.")}
    options = _older_names(life, options) | {**PARALLELISM, "hoodie.write.auto.upgrade": "false"}
    if life.theirs.release == RELEASES[6]:
        del options["hoodie.write.table.version"], options["hoodie.write.auto.upgrade"]
    table, theirs = life.arrow(row for _, row in rows), life.theirs
    life.expect(lambda: theirs.write(life.path, table, options), records)
