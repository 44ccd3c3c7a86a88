"""Every timeline file that Apache Hudi wrote into the golden tables is read and written again without a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.format.avro.container import is_container
from pyhudi.storage import open_storage
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.rollback_plan import RollbackPlan
from pyhudi.timeline.timeline_layout import Layout
from tests.golden.expected import NAMES, unpack
from tests.unit.timeline.golden import TimelineFile, all_files, timeline_files

FILES = all_files()
WRITES = {Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT}


def datum_block(container: bytes) -> bytes:
    """The data block of a one-block Avro container: what follows the header, without the random sync marker."""
    parts = container.split(container[-16:])
    assert len(parts) == 3
    return parts[1]


def holds_commit_metadata(file: TimelineFile) -> bool:
    instant = file.layout.parse(file.name)
    assert instant is not None
    return instant.action in WRITES and not (
        instant.action == Action.REPLACE_COMMIT and instant.state is State.REQUESTED
    )


def test_there_is_something_to_look_at():
    assert len(FILES) > 300
    assert sum(1 for file in FILES if file.data) > 250


@pytest.mark.parametrize("table", NAMES)
def test_names(table: str):
    files = [file for file in timeline_files(table) if file.name not in ("hoodie.properties", "_version_")]
    for file in files:
        instant = file.layout.parse(file.name)
        assert instant is not None, str(file)
        again = file.layout.file_name(instant.requested, instant.action, instant.state, instant.completion)
        assert again == file.name


@pytest.mark.parametrize("table", NAMES)
def test_commit_metadata_round_trip(table: str):
    """JSON is equal byte by byte; of Avro the data block is, while the header lacks doc strings and Java's hints."""
    for file in timeline_files(table):
        if file.layout.parse(file.name) is None or not file.data or not holds_commit_metadata(file):
            continue
        instant = file.layout.parse(file.name)
        assert instant is not None
        again = decode_commit(file.data).encode(6 if file.layout.version == 1 else 9, instant.action)
        if is_container(file.data):
            assert datum_block(again) == datum_block(file.data), str(file)
        else:
            assert again == file.data, str(file)


@pytest.mark.parametrize("table", NAMES)
def test_plans_and_results_round_trip(table: str):
    for file in timeline_files(table):
        instant = file.layout.parse(file.name)
        if instant is None or not file.data or holds_commit_metadata(file):
            continue
        if instant.action == Action.REPLACE_COMMIT and instant.state is State.INFLIGHT:
            continue
        record = decode_record(instant.action, instant.state, file.data)
        again = encode_record(instant.action, instant.state, record, 6 if file.layout.version == 1 else 9)
        assert datum_block(again) == datum_block(file.data), str(file)
        if instant.action == Action.ROLLBACK and instant.state is State.REQUESTED:
            assert datum_block(RollbackPlan.decode(file.data).encode()) == datum_block(file.data)


@pytest.mark.parametrize("table", NAMES)
def test_timeline_is_what_apache_hudi_sees(table: str, tmp_path: Path):
    golden = unpack(table, tmp_path)
    layout = Layout.from_properties({"hoodie.table.version": str(golden.document["table_version"])})
    seen = ActiveTimeline.load(open_storage(golden.path.as_uri()), layout).timeline
    by_file = {instant.file_name: instant for instant in seen}
    expected = golden.document["instants"]
    for want in expected:
        instant = by_file[want["file"]]
        assert instant.requested == want["requested"]
        assert instant.completion == want["completed"]
        assert instant.action == want["action"]
        assert instant.state == want["state"]
    # the expectations name one instant per time, so a savepoint there hides the commit that it saves
    assert {i.requested for i in seen} == {want["requested"] for want in expected}
