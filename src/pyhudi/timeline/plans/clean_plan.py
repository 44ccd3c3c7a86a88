"""Clean plans: the files that a clean deletes, as objects and as timeline content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import file_name_of, file_paths
from pyhudi.storage import join_path
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.instant import Action, Instant, State

PLAN_VERSION = 2
SAVEPOINTS = "savepointed_timestamps"
"""Key of the extra metadata: the savepoints that were respected."""
INCOMPLETE = "pyhudi.clean.incomplete"
"""Key of the extra metadata: not everything was planned, so the next plan considers all partitions."""
ORPHANS = "pyhudi.clean.orphans"
"""Key of the extra metadata: the files belong to no write of the timeline."""
EMPTIED = "pyhudi.clean.emptied.partitions"
"""Key of the extra metadata of plans: partition paths without files after the clean, as a JSON list. Those that are in
``partitionsToBeDeleted`` are deleted by Apache Hudi with all that was written to them since the plan was made."""

EXPIRED_SCHEMA = pa.schema([("partition", pa.string()), ("name", pa.string()), ("size", pa.int64())])
"""Files to delete: partition path, name without folders, size in bytes."""


def emptied_partitions(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the partitions that a plan (record of ``clean.requested``) leaves without files."""
    named = (record["extraMetadata"] or {}).get(EMPTIED)
    return tuple(record["partitionsToBeDeleted"] or () if named is None else json.loads(named))


def paths_of(files: pa.Table) -> pa.StringArray:
    """Return the paths of files (`EXPIRED_SCHEMA`), relative to the table's root."""
    return file_paths(files["partition"].combine_chunks(), files["name"].combine_chunks())


class ActionInstant(NamedTuple):
    """An instant in a clean plan (Apache Hudi's ``HoodieActionInstant``): requested time, action and state."""

    timestamp: str
    action: str
    state: str

    @classmethod
    def from_instant(cls, instant: Instant) -> ActionInstant:
        return cls(instant.requested, instant.action, instant.state.value)


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """The files that a clean deletes.

    Attributes:
        files: `pyhudi.timeline.plans.clean_plan.EXPIRED_SCHEMA`; sizes are null in a plan from the timeline.
        policy: Name of the cleaning policy.
        earliest: First write whose snapshot remains readable; None for policies that count versions.
        last_completed: Last completed write when the plan was made.
        partitions: Partition paths without files after the clean.
        savepoints: Instants whose files were retained for a savepoint.
        incomplete: Some partitions or files were omitted, by a filter or because there are too many.
        instant: None while the plan is not in the timeline.
        state: State in the timeline.
        reason: Why it is due, or why there is nothing to do.
        orphans: The files belong to no write, even if readers consider them part of the table.
    """

    files: pa.Table = field(default_factory=EXPIRED_SCHEMA.empty_table)
    policy: str = ""
    earliest: ActionInstant | None = None
    last_completed: str = ""
    partitions: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()
    incomplete: bool = False
    instant: str | None = None
    state: State | None = None
    reason: str = ""
    orphans: bool = False

    def __len__(self) -> int:
        return int(self.files.num_rows)

    @property
    def num_bytes(self) -> int:
        """Total size of the files in bytes, as far as known."""
        return int(pc.sum(self.files["size"]).as_py() or 0)

    @property
    def earliest_instant(self) -> str:
        """Instant of `earliest`; empty without one."""
        return "" if self.earliest is None else self.earliest.timestamp

    def scheduled(self, instant: str) -> CleanPlan:
        """Return the same plan with its instant in the timeline."""
        return replace(self, instant=instant, state=State.REQUESTED)

    def paths(self) -> pa.Array:
        """Return the paths of the files, relative to the table's root."""
        return paths_of(self.files)

    def names_by_partition(self) -> dict[str, list[str]]:
        """Return the names of the files of each partition."""
        grouped = self.files.group_by("partition", use_threads=False).aggregate([("name", "list")])
        return dict(zip(grouped["partition"].to_pylist(), grouped["name_list"].to_pylist(), strict=True))

    def extra_metadata(self) -> dict[str, str]:
        """Return the extra metadata of the plan and of the clean."""
        extra = {SAVEPOINTS: ",".join(self.savepoints)} if self.savepoints else {}
        extra |= {INCOMPLETE: "true"} if self.incomplete else {}
        return extra | ({ORPHANS: "true"} if self.orphans else {})

    def encode(self, version: int, root: str) -> bytes:
        """Return the content of ``clean.requested``; ``root`` is the URI of the table."""
        emptied = {EMPTIED: json.dumps(self.partitions)} if self.partitions else {}
        record: dict[str, Any] = {
            "earliestInstantToRetain": None if self.earliest is None else self.earliest._asdict(),
            "lastCompletedCommitTimestamp": self.last_completed,
            "policy": self.policy,
            "filesToBeDeletedPerPartition": {},
            "version": PLAN_VERSION,
            "filePathsToBeDeletedPerPartition": {
                partition: [_file_info(root, partition, name) for name in names]
                for partition, names in self.names_by_partition().items()
            },
            "partitionsToBeDeleted": [],
            "extraMetadata": self.extra_metadata() | emptied,
        }
        return encode_record(Action.CLEAN, State.REQUESTED, record, version)

    @classmethod
    def decode(cls, instant: Instant, data: bytes) -> CleanPlan:
        """Parse a plan of the timeline. Only the names in the paths of files are used.

        Raises:
            FormatError: The bytes are not a complete plan.
        """
        record = decode_record(Action.CLEAN, State.REQUESTED, data)
        listed = record["filePathsToBeDeletedPerPartition"] or {}
        old = record["filesToBeDeletedPerPartition"] or {}
        paths = {
            p: [info["filePath"] for info in infos if not info["isBootstrapBaseFile"]] for p, infos in listed.items()
        }
        names = [(p, file_name_of(path)) for p, file_paths in {**old, **paths}.items() for path in file_paths if path]
        columns = [pa.array([n[0] for n in names], pa.string()), pa.array([n[1] for n in names], pa.string())]
        earliest = record["earliestInstantToRetain"]
        return cls(
            pa.Table.from_arrays([*columns, pa.nulls(len(names), pa.int64())], schema=EXPIRED_SCHEMA),
            record["policy"],
            None if earliest is None else ActionInstant(**earliest),
            record["lastCompletedCommitTimestamp"],
            emptied_partitions(record),
            tuple(filter(None, (record["extraMetadata"] or {}).get(SAVEPOINTS, "").split(","))),
            (record["extraMetadata"] or {}).get(INCOMPLETE) == "true",
            instant.requested,
            instant.state,
            orphans=(record["extraMetadata"] or {}).get(ORPHANS) == "true",
        )

    def __repr__(self) -> str:
        where = f"{self.instant}, {self.state.value.lower()}" if self.instant and self.state else "not scheduled"
        if not len(self):
            return f"clean, {where}: nothing to do" + (f"; {self.reason}" if self.reason else "")
        partitions = len(pc.unique(self.files["partition"]))
        text = f"clean, {where}: {len(self):,} files in {partitions:,} partitions, {self.num_bytes:,} bytes"
        if self.earliest is not None:
            text += f", snapshots from {self.earliest.timestamp} on are retained"
        return text + (f"; {self.reason}" if self.reason else "")


def clean_metadata(
    plan: CleanPlan,
    start: str,
    millis: int,
    *,
    version: int,
    dropped: Sequence[str],
    extra: Mapping[str, str],
) -> bytes:
    """Return the content of a completed clean, which has deleted all files of its plan.

    Args:
        plan: Plan that was executed.
        start: Instant of the clean.
        millis: Duration in milliseconds.
        version: Table version.
        dropped: Partitions that were deleted.
        extra: Extra metadata.
    """
    deleted, gone = plan.names_by_partition(), frozenset(dropped)
    partitions = {}
    for partition in dict.fromkeys([*deleted, *dropped]):
        names = deleted.get(partition, [])
        partitions[partition] = {
            "partitionPath": partition,
            "policy": plan.policy,
            "deletePathPatterns": names,
            "successDeleteFiles": names,
            "failedDeleteFiles": [],
            "isPartitionDeleted": partition in gone,
        }
    record: dict[str, Any] = {
        "startCleanTime": start,
        "timeTakenInMillis": millis,
        "totalFilesDeleted": len(plan),
        "earliestCommitToRetain": plan.earliest_instant,
        "lastCompletedCommitTimestamp": plan.last_completed,
        "partitionMetadata": partitions,
        "version": PLAN_VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(extra),
    }
    return encode_record(Action.CLEAN, State.COMPLETED, record, version)


def _file_info(root: str, partition: str, name: str) -> dict[str, Any]:
    return {"filePath": f"{root}/{join_path(partition, name)}", "isBootstrapBaseFile": False}
