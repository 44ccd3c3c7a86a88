"""Cleans of Apache Hudi: the same files by our rules, the same plans and results in our files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.format.file_names import parse_names
from pyhudi.services.cleaning.clean_planner import pending_cleans
from pyhudi.storage import Storage, join_path
from pyhudi.table.clean_retention import CleanRetention, expired_files
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_listing import FILE_SCHEMA, list_files
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.clean_plan import CleanPlan, clean_metadata

TABLES = Path(__file__).parents[3] / "golden" / "tables"
NAMES = [
    "v6_cow_archived_replace",
    "v6_cow_nonpart_clean",
    "v6_to_v9_cow",
    "v8_mor_rollback_lsm",
    "v9_mor_compaction_lsm",
]


@pytest.fixture(params=NAMES)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> TableMetaClient:
    with zipfile.ZipFile(TABLES / f"{request.param}.zip") as file:
        file.extractall(tmp_path)
    return TableMetaClient.open(str(tmp_path / request.param))


def cleans(active: ActiveTimeline) -> list[Instant]:
    return list(active.timeline.completed().of_actions(Action.CLEAN))


def plan_of(active: ActiveTimeline, clean: Instant) -> CleanPlan:
    return CleanPlan.decode(clean, active.read_state(clean, State.REQUESTED))


def deleted(plans: Sequence[CleanPlan]) -> pa.Table:
    """What the plans name, as files that are there."""
    files = pa.concat_tables([plan.files for plan in plans])
    names = parse_names(files["name"])
    columns = {
        "partition": files["partition"],
        "path": pa.array([join_path(p, n) for p, n in zip(*files.select([0, 1]).to_pydict().values(), strict=True)]),
        "size": pa.array([1] * files.num_rows),
        **{name: names[name] for name in ("kind", "file_id", "token", "instant", "log_version")},
    }
    return pa.Table.from_arrays([columns[f.name] for f in FILE_SCHEMA], schema=FILE_SCHEMA)


def test_the_same_files_go(client: TableMetaClient) -> None:
    active = client.active_timeline()
    found = cleans(active)
    assert found
    plans = [plan_of(active, clean) for clean in found]
    for number, (clean, plan) in enumerate(zip(found, plans, strict=True)):
        then = active.timeline.up_to(clean.requested)

        def lister(
            storage: Storage, partitions: Sequence[str] | None, later: list[CleanPlan] = plans[number:]
        ) -> tuple[pa.Table, list[str]]:
            files, paths = list_files(storage, partitions)
            return pa.concat_tables([files, deleted(later)]), paths

        view = FileSystemView.load(client, then, lister=lister)
        slices = view.all_slices()
        ours = expired_files(
            slices, view.replaced_slices(plan.earliest_instant), CleanRetention(), plan.earliest_instant
        )
        partitions = set(plan.names_by_partition())
        mine = {(p, n) for p, n in zip(*ours.select([0, 1]).to_pydict().values(), strict=True) if p in partitions}
        theirs = set(zip(*plan.files.select([0, 1]).to_pydict().values(), strict=True))
        assert mine == theirs


def test_plans_and_results_are_written_as_they_are(client: TableMetaClient) -> None:
    active, version = client.active_timeline(), client.config.version
    for clean in cleans(active):
        plan, data = plan_of(active, clean), active.read_state(clean, State.REQUESTED)
        theirs = decode_record(Action.CLEAN, State.REQUESTED, data)
        ours = decode_record(Action.CLEAN, State.REQUESTED, plan.encode(version, _root(theirs)))
        assert ours == theirs
        result = active.completed_record(clean)
        millis, extra = result["timeTakenInMillis"], plan.extra_metadata()
        content = clean_metadata(plan, clean.requested, millis, version=version, dropped=(), extra=extra)
        assert decode_record(Action.CLEAN, State.COMPLETED, content) == result
    assert not pending_cleans(active)


def _root(record: dict[str, dict[str, list[dict[str, str]]]]) -> str:
    (partition, infos), *_ = record["filePathsToBeDeletedPerPartition"].items()
    folder = str(infos[0]["filePath"]).rpartition("/")[0]
    return folder.removesuffix(f"/{partition}") if partition else folder
