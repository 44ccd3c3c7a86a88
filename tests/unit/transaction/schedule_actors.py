"""Actors of simulated schedules: writers, a compaction, and clusterings by pyhudi and as in Apache Hudi."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from pyhudi.errors import NonRetryableConflictError
from pyhudi.format.file_names import base_file_name, log_file_name
from pyhudi.format.log import scan_blocks
from pyhudi.storage import join_path
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.pending_file_groups import is_clustering, pending_clustering_groups, pending_compaction_groups
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.markers import IOType
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.handles.marked_file import MarkedFile
from pyhudi.write.settings.log_settings import log_slices
from tests.unit.transaction.simulation import make_lock
from tests.unit.transaction.tables import SCHEMA

PARTITION, GROUP = "p", "00000000-g-0"
FIRST = "first"
EXTRA = {"schema": SCHEMA}


def opened(storage: Any) -> Any:
    config = TableConfig.load(storage)
    return SimpleNamespace(
        storage=storage, config=config, active_timeline=lambda: ActiveTimeline.load(storage, config.layout)
    )


def slices_of(client: Any, now: ActiveTimeline) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _view(client, now).latest_slices().to_pylist()
    return found


def _view(client: Any, now: ActiveTimeline) -> FileSystemView:
    return FileSystemView.load(TableSnapshot(client.storage, client.config, now))


def rows_of(storage: Any, now: ActiveTimeline, paths: Sequence[str]) -> list[str]:
    """The rows in files of a slice. The names of log files of version 6 do not say who wrote them; their blocks do, and
    command blocks void those before them."""
    found: list[tuple[str, list[str]]] = []
    for path in paths:
        data = storage.read(path)
        if data.startswith(b"{"):
            content = json.loads(data)
            found.append((content["instant"], content["rows"]))
            continue
        voided = {block.target_instant for block in scan_blocks(data)}
        found = [(instant, rows) for instant, rows in found if instant not in voided]
    return [row for instant, rows in found if now.timeline.contains_or_before_start(instant) for row in rows]


def paths_in(piece: dict[str, Any]) -> list[str]:
    return [path for path in (piece["base_path"], *piece["log_paths"]) if path]


def visible(storage: Any) -> list[str]:
    client = opened(storage)
    now = client.active_timeline()
    return [row for piece in slices_of(client, now) for row in rows_of(storage, now, paths_in(piece))]


class Writer:
    """Adds a row: to the file group (``update``), in one of its own (``insert``), in place of all (``overwrite``)."""

    def __init__(self, kind: str, row: str, options: dict[str, str], *, logs: bool) -> None:
        self.kind, self.row, self.options, self.logs = kind, row, options, logs
        self.replaced: list[str] = []
        self.instant = ""

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        now = client.active_timeline()
        plan, basis = self._plan(client, now), TimelineSnapshot.from_timeline(now.timeline)
        action = "deltacommit" if self.logs else "commit"
        operation = "UPSERT"
        if self.kind == "overwrite":
            action, operation = "replacecommit", "INSERT_OVERWRITE_TABLE"
        with Transaction.begin(client, action, operation, self.options) as tx:
            self.instant = tx.instant
            if TimelineSnapshot.from_timeline(tx.timeline) != basis:
                plan = self._plan(client, tx.active)
            tx.to_inflight()
            stats = [self._write(tx, *each) for each in plan]
            replaced = None
            if self.kind == "overwrite":
                replaced = pa.table([[PARTITION] * len(self.replaced), self.replaced], schema=REPLACED_SCHEMA)
            return tx.commit(CommitMetadata(operation, write_stats(stats), EXTRA, replaced=replaced))

    def _plan(self, client: Any, now: ActiveTimeline) -> list[tuple[str, str | None, list[str], bool]]:
        """File groups to be written: id, instant of the slice, the rows that go on, whether to a log file."""
        pieces = slices_of(client, now)
        self.replaced = [piece["file_id"] for piece in pieces] if self.kind == "overwrite" else []
        if self.kind != "update" or not pieces:
            return [(f"{uuid.uuid4().hex[:6]}-{self.row}-0", None, [], False)]
        waiting = set(pending_clustering_groups(now)["file_id"].to_pylist())
        piece = next((p for p in pieces if FIRST in rows_of(client.storage, now, paths_in(p))), pieces[0])
        if piece["file_id"] in waiting:
            raise NonRetryableConflictError("waits for a clustering")
        if not self.logs:
            return [(piece["file_id"], piece["base_instant"], rows_of(client.storage, now, paths_in(piece)), False)]
        table = pa.Table.from_pylist([piece], schema=_view(client, now).latest_slices().schema)
        found = log_slices(table, table, pending_compaction_groups(now), named_by_slice=client.config.version < 8)
        return [(piece["file_id"], found["base_instant"][0].as_py(), [], True)]

    def _write(self, tx: Transaction, file_id: str, base: str | None, before: list[str], log: bool) -> dict[str, Any]:
        token = new_token()
        old = tx.config.version < 8
        name = base_file_name(file_id, token, tx.instant)
        kind = IOType.CREATE if base is None else IOType.MERGE
        if log:
            assert base is not None
            name = log_file_name(file_id, base if old else tx.instant, 1, token)
            kind = IOType.APPEND if old else IOType.CREATE
        announced = MarkedFile(tx.storage, tx.instant, PARTITION, name, kind)
        tx.storage.write(announced.path, content_of(tx.instant, [*before, self.row]))
        announced.check()
        more = {"logVersion": 1, "logOffset": 0, "baseFile": "", "logFiles": [name]} if log else {}
        return {
            "fileId": file_id,
            "path": announced.path,
            "partitionPath": PARTITION,
            "numWrites": 1,
            "prevCommit": base,
            **more,
        }


def new_token() -> str:
    """A write token that no other task has."""
    return f"0-1-{uuid.uuid4().int % 10**9}"


def content_of(instant: str, rows: list[str]) -> bytes:
    return json.dumps({"instant": instant, "rows": rows}).encode()


class Compaction:
    """Plans a compaction of the file group and carries it out."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        plans = client.active_timeline().timeline.pending().of_actions(Action.COMPACTION)
        return self._run(client, plans.instants[0].requested if plans else self._plan(client))

    def finish(self, storage: Any) -> None:
        """Carry out the plan that is there."""
        client = opened(storage)
        for plan in client.active_timeline().timeline.pending().of_actions(Action.COMPACTION):
            outcome = self._run(client, plan.requested, take_over=True)
            assert isinstance(outcome, Committed), outcome

    def _run(self, client: Any, instant: str, *, take_over: bool = False) -> Any:
        storage, now = client.storage, client.active_timeline()
        entry = now.timeline.find(instant, Action.COMPACTION)
        if entry is None or entry.is_completed:
            return None
        (operation,) = decode_record(Action.COMPACTION, State.REQUESTED, now.read_state(entry, State.REQUESTED))[
            "operations"
        ]
        paths = [
            join_path(PARTITION, name.rpartition("/")[2])
            for name in (operation["dataFilePath"], *operation["deltaFilePaths"])
            if name
        ]
        attempt = uuid.uuid4().hex[:8]
        tx = PlannedTransaction.start_attempt(
            client, PlanAttempt(Action.COMPACTION, instant, "COMPACT", attempt), self.options, take_over=take_over
        )
        if tx is None:
            return None
        with tx:
            tx.to_inflight()
            rows = rows_of(storage, client.active_timeline(), paths)
            name = base_file_name(operation["fileId"], new_token(), instant)
            announced = MarkedFile(storage, instant, PARTITION, name, IOType.CREATE, attempt=attempt)
            storage.write(announced.path, content_of(instant, rows))
            announced.check()
            stat = {"fileId": operation["fileId"], "path": announced.path, "partitionPath": PARTITION, "numWrites": 1}
            return tx.commit(CommitMetadata("COMPACT", write_stats([stat]), EXTRA, compacted=True))

    def _plan(self, client: Any) -> str:
        storage = client.storage
        lock = make_lock(storage.actor)
        generator = TimeGenerator(storage, self.options, "UTC", lock=lock)
        with generator.reserve() as reserved:
            now = client.active_timeline()
            piece = slices_of(client, now)[0]
            operation = {
                "baseInstantTime": piece["base_instant"],
                "deltaFilePaths": [path.rpartition("/")[2] for path in piece["log_paths"]],
                "dataFilePath": piece["base_path"] and piece["base_path"].rpartition("/")[2],
                "fileId": piece["file_id"],
                "partitionPath": PARTITION,
                "metrics": {},
            }
            record = {"operations": [operation], "extraMetadata": None, "version": 2}
            instant = reserved.take(now.latest_time)
            content = encode_record(Action.COMPACTION, State.REQUESTED, record, client.config.version)
            lock.ensure_held()
            now.create_requested(Action.COMPACTION, instant, content)
        return instant


def clustering_plans(client: Any) -> list[Instant]:
    now = client.active_timeline()
    return [i for i in now.timeline.pending() if is_clustering(now, i)]


def plan_clustering(client: Any, options: dict[str, str]) -> tuple[Instant, dict[str, Any]]:
    """A new plan to rewrite the file group, with the slice that it is of."""
    lock = make_lock(client.storage.actor)
    generator = TimeGenerator(client.storage, options, "UTC", lock=lock)
    with generator.reserve() as reserved:
        now = client.active_timeline()
        piece = slices_of(client, now)[0]
        group = {"partitionPath": PARTITION, "fileId": piece["file_id"], "dataFilePath": "x", "deltaFilePaths": []}
        record = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [{"slices": [group]}]}}
        instant = reserved.take(now.latest_time)
        content = encode_record(Action.CLUSTERING, State.REQUESTED, record, client.config.version)
        lock.ensure_held()
        return now.create_requested(Action.CLUSTERING, instant, content), piece


def replacement(piece: dict[str, Any], path: str) -> CommitMetadata:
    """What the commit of a clustering says that made one file."""
    stat = {"fileId": path.rpartition("/")[2].split("_")[0], "path": path, "partitionPath": PARTITION, "numWrites": 1}
    replaced = pa.table([[PARTITION], [piece["file_id"]]], schema=REPLACED_SCHEMA)
    return CommitMetadata("CLUSTER", write_stats([stat]), EXTRA, replaced=replaced)


class ForeignClustering:
    """Rewrites the file group into another one, as Apache Hudi does it: it rolls nothing back, and gives no sign."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        if clustering_plans(client):
            return None
        entry, piece = plan_clustering(client, self.options)
        instant = entry.requested
        now = client.active_timeline()
        rows = rows_of(storage, now, paths_in(piece))
        entry = now.to_inflight(entry)
        path = join_path(PARTITION, base_file_name(f"{uuid.uuid4().hex[:6]}-c-0", "0-9-9", instant))
        storage.write(path, content_of(instant, rows))
        lock = make_lock(storage.actor)
        with TimeGenerator(storage, self.options, "UTC", lock=lock).reserve() as reserved:
            now = client.active_timeline()
            completion = reserved.take(now.latest_time) if now.layout.version >= 2 else None
            content = replacement(piece, path).encode(client.config.version, Action.CLUSTERING)
            lock.ensure_held()
            now.complete(entry, content, completion)
        return None


class Clustering:
    """The same as this library does it: an attempt that died is rolled back, and whoever comes next tries again."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        if not clustering_plans(client):
            plan_clustering(client, self.options)
        return self.finish(storage, take_over=False)

    def finish(self, storage: Any, *, take_over: bool = True) -> Any:
        """Carry out the plan that is there."""
        client = opened(storage)
        for plan in clustering_plans(client):
            (group,) = pending_clustering_groups(client.active_timeline()).to_pylist()
            attempt = uuid.uuid4().hex[:8]
            tx = PlannedTransaction.start_attempt(
                client, PlanAttempt(plan.action, plan.requested, "CLUSTER", attempt), self.options, take_over=take_over
            )
            if tx is None:
                return None
            with tx:
                tx.to_inflight()
                now = client.active_timeline()
                piece = next((p for p in slices_of(client, now) if p["file_id"] == group["file_id"]), None)
                if piece is None:  # it was replaced
                    return None
                rows = rows_of(client.storage, now, paths_in(piece))
                name = base_file_name(f"{uuid.uuid4().hex[:6]}-c-0", new_token(), plan.requested)
                announced = MarkedFile(storage, plan.requested, PARTITION, name, IOType.CREATE, attempt=attempt)
                storage.write(announced.path, content_of(plan.requested, rows))
                announced.check()
                return tx.commit(replacement(piece, announced.path))
        return None
