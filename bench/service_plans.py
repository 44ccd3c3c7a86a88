"""``python -m bench.service_plans [files]``: cleans, rollbacks, restores, compactions and bootstraps planned over very
many files.

Makes the timeline, the metadata table and markers of tables without their data, and plans over them. Each plan is made
by a process of its own (``cold``) and made again (``warm``); a rollback's is made whole, as it goes to the
timeline. Times are those of the processor.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tests.metadata_tables import attach, file_lists

from bench.memory_sampling import most_memory
from bench.query_planning import SCHEMA
from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services import restore
from pyhudi.services.bootstrap.source_listing import LISTED_SCHEMA, source_files
from pyhudi.services.cleaning.clean_planner import make_clean_plan
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.storage import open_storage
from pyhudi.table.bootstrap_index import BootstrapIndex
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.timeline.plans.compaction_plan import OPERATION_SCHEMA, CompactionPlan
from pyhudi.transaction.rollback.rollback_planner import plan_rollback

PARTITIONS = 100
COMMITS = 20
REPEAT = 2
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "pyhudi.storage.fsync": "none",
}


def _instant(number: int) -> str:
    return f"202601010000{number:05d}"


def _files(count: int, instant: str) -> pa.Table:
    """Files of as many file groups, the same groups for every instant."""
    number = np.arange(count)
    partition = pc.utf8_lpad(pa.array(np.sort(number % PARTITIONS)).cast(pa.string()), 5, "0")
    ids = pc.binary_join_element_wise(
        pc.utf8_lpad(pa.array(number).cast(pa.string()), 8, "0"), "-142c-4d86-8445-86fbbd496c52-0", ""
    )
    name = pc.binary_join_element_wise(ids, f"_0-31-38_{instant}.parquet", "")
    return pa.table({"partition": partition, "file_id": ids, "name": name, "size": pa.array(number + 10**6)})


def _commit(client: TableMetaClient, instant: str, files: pa.Table, *, completed: bool = True) -> None:
    active = client.active_timeline()
    active.create_requested(Action.COMMIT, instant)
    inflight = active.to_inflight(active.timeline.find(instant, Action.COMMIT))
    if not completed:
        return
    known = {
        "fileId": files["file_id"],
        "path": pc.binary_join_element_wise(files["partition"], files["name"], "/"),
        "partitionPath": files["partition"],
        "numWrites": pa.repeat(pa.scalar(1000, pa.int64()), files.num_rows),
        "fileSizeInBytes": files["size"],
    }
    columns = [
        known[f.name].cast(f.type) if f.name in known else pa.nulls(files.num_rows, f.type) for f in WRITE_STAT_SCHEMA
    ]
    stats = pa.Table.from_arrays(columns, schema=WRITE_STAT_SCHEMA)
    metadata = CommitMetadata("UPSERT", stats, {"schema": to_avro(SCHEMA, "t")})
    active.complete(inflight, metadata.encode(9, Action.COMMIT), instant)


def make(root: Path, files: int) -> None:
    """``many``: so many files by several commits to the same file groups; ``once``: by one commit after a first small
    one; ``pending``: by a commit that is pending, with markers."""
    for name in ("many", "once", "pending"):
        HudiTable.create(str(root / name), OPTIONS)
    client = TableMetaClient.open(str(root / "many"))
    parts = []
    for number in range(COMMITS):
        parts.append(_files(files // COMMITS, _instant(number)))
        _commit(client, _instant(number), parts[-1])
    every = pa.concat_tables(parts).sort_by("partition").combine_chunks()
    attach(client.storage, {"files": file_lists(every)}, _instant(COMMITS))
    for name in ("once", "pending"):
        client = TableMetaClient.open(str(root / name))
        _commit(client, _instant(0), _files(PARTITIONS, _instant(0)))
        many = _files(files, _instant(1))
        _commit(client, _instant(1), many, completed=name == "once")
    markers = Markers(client.storage, _instant(1))
    for partition, file in zip(many["partition"].to_pylist(), many["name"].to_pylist(), strict=True):
        markers.create(partition, file, IOType.CREATE)


def _cleaning(root: Path) -> int:
    opts = Options.parse(OPTIONS)
    return len(make_clean_plan(_pinned(root / "many"), opts))


def _restoring(root: Path) -> int:
    """The plan of a restore, and those of the rollbacks that it does."""
    table = _pinned(root / "many")
    files = 0
    with patch.object(restore, "check_not_cleaned"):  # there are no files
        plan_of_restore = restore.plan_restore(table, _instant(0))
    for target in plan_of_restore.targets:
        entry = table.active.timeline.find(*target)
        assert entry is not None
        plan = plan_rollback(table.active, 9, entry, with_plan=True)
        files += sum(len(request.files) for request in plan.requests)
        plan.encode()
    return files


def _rolling_back(name: str) -> Callable[[Path], int]:
    def run(root: Path) -> int:
        active = _pinned(root / name).active
        entry = active.timeline.find(_instant(1), Action.COMMIT)
        assert entry is not None
        assert (entry.state is State.COMPLETED) == (name == "once")
        plan = plan_rollback(active, 9, entry)
        plan.encode()
        return sum(len(request.files) for request in plan.requests)

    return run


def _compacting(root: Path) -> int:
    """The slices of a compaction of all file groups, each with a base file and a log file. No file exists."""
    table = _pinned(root / "many")
    files = _files(_count(table), _instant(0))
    logs = pc.binary_join_element_wise(".", files["file_id"], f"_{_instant(1)}.log.1_0-1-1", "")
    known = {
        "partition": files["partition"],
        "file_id": files["file_id"],
        "base_instant": pa.repeat(pa.scalar(_instant(0)), files.num_rows),
        "base_file": files["name"],
        "log_files": pa.ListArray.from_arrays(np.arange(files.num_rows + 1, dtype=np.int32), logs.combine_chunks()),
    }
    columns = [known.get(f.name, pa.nulls(files.num_rows, f.type)) for f in OPERATION_SCHEMA]
    operations = pa.Table.from_arrays(columns, schema=OPERATION_SCHEMA)
    plan = CompactionPlan(operations, instant=_instant(COMMITS))
    return CompactionJob.from_plan(table, plan, Options.parse(OPTIONS)).slices.num_rows


def _bootstrapping(root: Path) -> int:
    """The index of a bootstrap by metadata only, with a skeleton file for each file of the source."""
    files = _files(_count(_pinned(root / "many")), _instant(0))
    columns = [files["partition"], files["partition"], files["name"], files["size"], files["size"]]
    listed = pa.Table.from_arrays(columns, schema=LISTED_SCHEMA)
    storage = open_storage(str(root / "once"))
    sources = source_files(storage.root, open_storage(str(root / "source")), listed)
    BootstrapIndex(storage).write("/source", sources)
    return sources.num_rows


def _count(table: TableSnapshot) -> int:
    """Files of all commits."""
    return sum(table.active.commit_metadata(instant).stats.num_rows for instant in table.active.timeline.writes())


PLANS: dict[str, Callable[[Path], int]] = {
    "clean": _cleaning,
    "restore": _restoring,
    "rollback of a completed write": _rolling_back("once"),
    "rollback by markers": _rolling_back("pending"),
    "slices of a compaction": _compacting,
    "index of a bootstrap": _bootstrapping,
}


def _pinned(root: Path) -> TableSnapshot:
    return TableSnapshot.load(TableMetaClient.open(str(root)))


def _plan(root: Path, what: str) -> None:
    times = []
    for _ in range(REPEAT):
        start = time.process_time()
        found = PLANS[what](root)
        times.append(time.process_time() - start)
    print(
        f"{what:<30} {times[0]:7.2f} s cold {min(times[1:]):7.2f} s warm, {found:>9,} files in the plan, "
        f"{most_memory():6,.0f} MiB",
        flush=True,
    )


def main() -> int:
    """Make the tables and plan in other processes."""
    if sys.argv[1:2] == ["plan"]:
        _plan(Path(sys.argv[2]), sys.argv[3])
        return 0
    files = int(sys.argv[1]) if sys.argv[1:] else 100_000
    with tempfile.TemporaryDirectory(prefix="bench-plans-") as folder:
        make(Path(folder), files)
        print(f"{files:,} files", flush=True)
        for what in PLANS:
            subprocess.run([sys.executable, "-m", "bench.service_plans", "plan", folder, what], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
