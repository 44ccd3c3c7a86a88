"""Steps with several processes or threads: writers and services that are killed, and writers that race."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from random import Random
from typing import Any

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConflictError
from pyhudi.spark.write.dataframe_writer import write
from tests.processes import separate_processes
from tests.random_sequences import killed_process
from tests.random_sequences.life import Life
from tests.random_sequences.model import Place, Records
from tests.random_sequences.rows import Row
from tests.random_sequences.service_steps import (
    ARCHIVAL,
    CLEANING,
    LOG_COMPACTION,
    can_cluster,
    can_restore,
    draw_clustering,
    restore_target,
    restored,
)
from tests.random_sequences.steps import step
from tests.random_sequences.table_kinds import CUSTOM
from tests.random_sequences.write_steps import draw_upsert

_PATIENCE_SECONDS = 60


@step(3)
def killed_write(life: Life, rng: Random) -> None:
    """Kill the process of an upsert at a moment, or before or after a change of the storage; then go on."""
    rows = draw_upsert(life, rng)
    records = life.model.upsert(rows)
    target = killed_process.SparkWrite.of(
        life.spark, life.path, life.parquet(row for _, row in rows), life.write_options("upsert")
    )
    moment = rng.random() * 1.5
    effect = None if rng.random() < 0.3 else rng.randint(1, 25)
    _kill(target, effect, moment)
    found = life.new_writes()
    assert len(found) <= 1, f"a killed write made several commits: {found}"
    if found:
        life.model.commit(records, found[0].instant, found[0].completion)


@step(2)
def killed_service(life: Life, rng: Random) -> None:
    """Kill the process of a service before or after a change of the storage; then run it again."""
    name = rng.choice(_services(life))
    options: Mapping[str, str] = {
        "log_compact": LOG_COMPACTION,
        "cluster": draw_clustering(rng),
        "clean": CLEANING,
        "archive": ARCHIVAL,
    }.get(name, {})
    arguments: tuple[Any, ...] = ()
    if name == "restore":
        target = restore_target(life, rng)
        if target is None or not can_restore(life, target):
            return
        arguments = (target,)
    life.cleaned |= name in ("clean", "archive")
    service = killed_process.Service(life.path, life.options, name, arguments, dict(options))
    ended = _kill(service, rng.randint(1, 15), None)
    if name == "restore":
        if not ended:
            life.table.services.restore(*arguments)
        restored(life, arguments[0])
    elif not ended:
        getattr(life.table.services, name)(dict(options))
    life.new_writes()


def _services(life: Life) -> list[str]:
    """Return the services that need no Spark and can be run again after any error."""
    found = ["clean", "archive", "restore"]
    if life.kind.merge_on_read and life.kind.merging != CUSTOM:
        found += ["compact", "compact", "log_compact"]
    indexed = any("record_index" in name for name in HudiTable.for_path(life.path).config.metadata_partitions)
    if can_cluster(life.kind) and not indexed and life.kind.merging != CUSTOM:
        found += ["cluster", "cluster"]
    return found


def _kill(target: killed_process.Work, effect: int | None, moment: float | None) -> bool:
    """Run a process that kills itself at an effect, or is killed at a moment; return whether it came to its end."""
    context = separate_processes()
    started = context.Event()
    process = context.Process(target=killed_process.run, args=(target, effect, started))
    process.start()
    assert started.wait(_PATIENCE_SECONDS), "the process does not start"
    if effect is None and moment is not None:
        time.sleep(moment)
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
    process.join(_PATIENCE_SECONDS)
    assert process.exitcode in (0, -signal.SIGKILL), f"the process ended with {process.exitcode}"
    return process.exitcode == 0


@step(2)
def race(life: Life, rng: Random) -> None:
    """Let two writers change different records at once, with optimistic concurrency control."""
    rows = life.some_rows(rng, rng.randint(2, 14))
    options = {
        "hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie__clean__failed__writes__policy": "LAZY",
        "hoodie__write__num__retries__on__conflict__failures": rng.choice(("0", "2")),
    }
    shares: list[tuple[str, list[tuple[Place, Row]]]] = [
        (rng.choice(("upsert", "upsert", "delete")), share) for share in (rows[::2], rows[1::2])
    ]
    frames = [life.frame(row for _, row in share) for _, share in shares]
    done: list[str | None] = [None, None]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            given = life.write_options(shares[number][0], **options)
            done[number] = write(frames[number], life.path, given, "append").instant
        except ConflictError:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    found = life.new_writes()
    assert {one.instant for one in found} == {instant for instant in done if instant is not None}
    assert found, "both writers lost"
    for one in found:
        operation, share = shares[done.index(one.instant)]
        life.model.commit(_applied(life, operation, share), one.instant, one.completion, is_alone=len(found) == 1)


def _applied(life: Life, operation: str, rows: list[tuple[Place, Row]]) -> Records:
    if operation == "delete":
        return life.model.delete(where for where, _ in rows)
    return life.model.upsert(rows)
