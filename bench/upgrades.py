"""``python -m bench.upgrades [files]``: upgrade and downgrade of a table with many files in its active timeline, by
pyhudi and by Apache Hudi 1.2.0 (without the start of its Java virtual machine).

A copy-on-write table of version 6 without a metadata table: ten commits name the files, one block of statistics each.
What is measured is what becomes of the timeline and the properties; data files are not touched, so there are none.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.interop.harness.oracle import Oracle
from tests.tables import SCHEMA

from pyhudi.api.hudi_table import HudiTable
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action

COMMITS = 10
PARTITIONS = 100
PLAIN = {"hoodie.metadata.enable": "false", "pyhudi.storage.fsync": "none"}


def make(root: Path, files: int) -> None:
    """A table of version 6 whose commits name so many files."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": "6",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "v",
        **PLAIN,
    }
    HudiTable.create(str(root), options)
    active = TableMetaClient.open(str(root)).active_timeline()
    for commit in range(COMMITS):
        instant = f"202601010000{commit:05d}"
        active.create_requested(Action.COMMIT, instant)
        inflight = active.to_inflight(active.timeline.find(instant, Action.COMMIT))
        stats = [_stat(number, instant) for number in range(commit, files, COMMITS)]
        metadata = CommitMetadata("UPSERT", write_stats(stats), {"schema": to_avro(SCHEMA, "t")})
        active.complete(inflight, metadata.encode(6, Action.COMMIT))
        moment = 1_767_225_600 + commit
        os.utime(root / ".hoodie" / f"{instant}.commit", (moment, moment))


def _stat(number: int, instant: str) -> dict[str, object]:
    partition, file_id = f"p{number % PARTITIONS}", f"{number:08d}-0000-4000-8000-000000000000-0"
    path = f"{partition}/{file_id}_0-0-0_{instant}.parquet"
    sizes = {"fileSizeInBytes": 1_000_000, "totalWriteBytes": 1_000_000, "numWrites": 1000, "numInserts": 1000}
    return {"partitionPath": partition, "fileId": file_id, "path": path, **sizes}


def main() -> None:
    """Measure and print seconds, as JSON."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    found: dict[str, float] = {"files": files}
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours", Path(folder) / "theirs"
        make(ours, files)
        shutil.copytree(ours, theirs)
        services = HudiTable.for_path(str(ours), PLAIN).services
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for to, name in ((9, "upgrade"), (6, "downgrade")):
            begun = time.perf_counter()
            _ = services.upgrade(to) if to == 9 else services.downgrade(to)
            found[f"pyhudi {name}, s"] = round(time.perf_counter() - begun, 2)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        found["pyhudi memory, MB"] = grown // 1024
        with Oracle("1.2.0") as oracle:
            oracle.sql(f"CREATE TABLE t USING hudi LOCATION '{theirs}'")
            for to_version, name in (("NINE", "upgrade"), ("SIX", "downgrade")):
                begun = time.perf_counter()
                oracle.sql(f"CALL {name}_table(table => 't', to_version => '{to_version}')")
                found[f"Apache Hudi {name}, s"] = round(time.perf_counter() - begun, 2)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
