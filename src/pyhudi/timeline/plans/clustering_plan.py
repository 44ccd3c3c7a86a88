"""Clustering plans: groups of file slices to rewrite, as objects, as bytes, and as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.options import CLUSTERING_SORT_COLUMNS
from pyhudi.errors import FormatError
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import join_path
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.operation_types import CLUSTER

INPUT_SCHEMA = pa.schema(
    [
        ("group", pa.int32()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_file", pa.string()),
        ("log_files", pa.list_(pa.string())),
        ("log_bytes", pa.int64()),
        ("read_mb", pa.int64()),
        ("write_mb", pa.int64()),
    ]
)
"""One row per file slice: number of its group; names of its base file (null: none) and of its log files in merge order,
without folders; total bytes of the logs; megabytes (2^20) to read and write. Sizes are null in plans from the timeline,
which have them only per group."""

_METRICS = {"TOTAL_LOG_FILES_SIZE": "log_bytes", "TOTAL_IO_READ_MB": "read_mb", "TOTAL_IO_WRITE_MB": "write_mb"}


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """Plan of a clustering.

    ``inputs`` has `INPUT_SCHEMA`; ``outputs`` has the expected number of output files of each group. ``extra`` is
    additional metadata of each group: new buckets with consistent hashing, otherwise empty. ``strategy`` is the class
    with which Apache Hudi executes the plan, ``sort_columns`` are the sort columns. ``instant`` is None while the plan
    is not in the timeline, ``state`` is its state there. ``reason`` explains why it is due or not.
    """

    inputs: pa.Table = field(default_factory=INPUT_SCHEMA.empty_table)
    outputs: tuple[int, ...] = ()
    strategy: str = ""
    sort_columns: tuple[str, ...] = ()
    action: str = Action.CLUSTERING
    instant: str | None = None
    state: State | None = None
    reason: str = ""
    extra: tuple[Mapping[str, str], ...] = ()

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.outputs)

    @property
    def num_slices(self) -> int:
        """Number of file slices to rewrite."""
        return int(self.inputs.num_rows)

    @property
    def partitions(self) -> list[str]:
        """Partitions with clustered file groups, sorted."""
        paths: list[str] = pc.unique(self.inputs["partition"]).to_pylist()
        return sorted(paths)

    @property
    def file_groups(self) -> pa.Table:
        """File groups to rewrite: partition, file_id."""
        return self.inputs.select(["partition", "file_id"])

    def scheduled(self, action: str, instant: str) -> ClusteringPlan:
        """Return the same plan with its instant in the timeline."""
        return replace(self, action=action, instant=instant, state=State.REQUESTED)

    def encode(self, version: int, uri: Callable[[str], str]) -> bytes:
        """Return the content of the requested file for a table of that version; ``uri`` makes a path absolute."""
        groups: list[dict[str, Any]] = []
        for row in self.inputs.to_pylist():
            if row["group"] == len(groups):
                extra = self.extra[row["group"]] if self.extra else None
                groups.append(_group_record(self.outputs[row["group"]], extra))
            groups[row["group"]]["slices"].append(_slice_record(row, uri))
            _add_metrics(groups[row["group"]]["metrics"], row)
        params = {CLUSTERING_SORT_COLUMNS.key: ",".join(self.sort_columns)} if self.sort_columns else {}
        plan: dict[str, Any] = {
            "inputGroups": groups,
            "strategy": {"strategyClassName": self.strategy, "strategyParams": params, "version": 1},
            "extraMetadata": {},
            "version": 1,
            "preserveHoodieMetadata": True,
        }
        if version >= 8:
            plan["missingSchedulePartitions"] = []
        record = {"operationType": CLUSTER, "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
        return encode_record(Action.CLUSTERING, State.REQUESTED, record, version)

    @classmethod
    def decode(cls, action: str, instant: str, state: State, data: bytes) -> ClusteringPlan:
        """Parse a plan from the timeline.

        Raises:
            FormatError: The bytes are not a complete clustering plan.
        """
        found = cls.find(action, instant, state, data)
        if found is None:
            raise FormatError("it contains no clustering plan")
        return found

    @classmethod
    def find(cls, action: str, instant: str, state: State, data: bytes) -> ClusteringPlan | None:
        """Parse the clustering plan in a requested file; return None if it contains none, like that of a replacecommit
        that is no clustering.

        Raises:
            FormatError: The bytes are not a complete plan.
        """
        plan = _plan_record(data)
        if plan is None:
            return None
        groups = plan["inputGroups"] or ()
        rows = [
            _row(number, slice_record) for number, group in enumerate(groups) for slice_record in group["slices"] or ()
        ]
        strategy = plan["strategy"] or {}
        columns = (strategy.get("strategyParams") or {}).get(CLUSTERING_SORT_COLUMNS.key) or ""
        return cls(
            pa.Table.from_pylist(rows, schema=INPUT_SCHEMA),
            tuple(group["numOutputFileGroups"] or 1 for group in groups),
            strategy.get("strategyClassName") or "",
            tuple(part.strip() for part in columns.split(",") if part.strip()),
            action=action,
            instant=instant,
            state=state,
            extra=tuple(group.get("extraMetadata") or {} for group in groups),
        )

    def __repr__(self) -> str:
        where = "not scheduled" if self.instant is None or self.state is None else f"{self.instant}, {self.state.value}"
        lines = [f"clustering, {where.lower()}: {self._summary()}"]
        if self.reason:
            lines.append(f"  {self.reason}")
        return "\n".join(lines)

    def _summary(self) -> str:
        if not len(self):
            return "nothing to do"
        sorting = f", sorted by {', '.join(self.sort_columns)}" if self.sort_columns else ""
        return (
            f"{self.num_slices:,} file slices of {len(self.partitions):,} partitions in {len(self):,} groups, which "
            f"become about {sum(self.outputs):,} files{sorting}"
        )


def contains_clustering(requested: bytes) -> bool:
    """Return True if the requested file of a replacecommit plans a clustering. In layout 1 only its content shows it.
    Old releases leave the file of other replacecommits empty.

    Raises:
        FormatError: The bytes are not a complete plan.
    """
    return bool(requested) and _plan_record(requested) is not None


def _plan_record(requested: bytes) -> dict[str, Any] | None:
    plan: dict[str, Any] | None = decode_record(Action.CLUSTERING, State.REQUESTED, requested)["clusteringPlan"]
    return plan


def _group_record(outputs: int, extra: Mapping[str, str] | None) -> dict[str, Any]:
    metrics = dict.fromkeys(("TOTAL_LOG_FILES", "TOTAL_IO_MB", *_METRICS), 0.0)
    return {"slices": [], "metrics": metrics, "numOutputFileGroups": outputs, "extraMetadata": extra, "version": 1}


def _add_metrics(metrics: dict[str, float], row: Mapping[str, Any]) -> None:
    metrics["TOTAL_LOG_FILES"] += len(row["log_files"])
    for name, column in _METRICS.items():
        metrics[name] += row[column] or 0
    metrics["TOTAL_IO_MB"] += (row["read_mb"] or 0) + (row["write_mb"] or 0)


def _slice_record(row: Mapping[str, Any], uri: Callable[[str], str]) -> dict[str, Any]:
    folder, base = row["partition"], row["base_file"]
    return {
        "dataFilePath": "" if base is None else uri(join_path(folder, base)),
        "deltaFilePaths": [uri(join_path(folder, name)) for name in row["log_files"]],
        "fileId": row["file_id"],
        "partitionPath": folder,
        "bootstrapFilePath": "",
        "version": 1,
    }


def _row(number: int, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a slice of a plan. Paths start with the base path at the time of the plan, so only names are used."""
    base = record["dataFilePath"]
    return {
        "group": number,
        "partition": record["partitionPath"] or "",
        "file_id": record["fileId"],
        "base_file": file_name_of(base) if base else None,
        "log_files": [file_name_of(path) for path in record["deltaFilePaths"] or ()],
    }
