from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.timeline.instant import (
    ACTIONS,
    Instant,
    State,
    completed_action,
    format_instant,
    instant_of_millis,
    millis_of_instant,
    next_instant,
    parse_instant,
)
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout

moments = st.datetimes(datetime(1971, 1, 2), datetime(9998, 1, 1)).map(
    lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000)
)


@given(moments)
def test_text_of_a_moment(moment: datetime):
    text = format_instant(moment)
    assert len(text) == 17
    assert parse_instant(text) == moment
    assert text < next_instant(text)


@given(st.integers(0, 4_000_000_000_000))
def test_epoch_times_in_utc(millis: int):
    assert millis_of_instant(instant_of_millis(millis, "UTC"), "UTC") == millis


def test_known_epoch_time():
    assert millis_of_instant("20261121092947775", "UTC") == 1795253387775


def test_seconds_mean_their_last_millisecond():
    assert parse_instant("20211121095312") == datetime(2021, 11, 21, 9, 53, 12, 999000)


def test_digits_of_the_metadata_table_are_ignored():
    assert parse_instant("20211121095312123001") == parse_instant("20211121095312123")


@pytest.mark.parametrize("text", ["", "2021", "20211321095312123", "2021112109531212x", "00000000000000000"])
def test_no_instant_time(text: str):
    with pytest.raises(ValueError, match=r"."):
        parse_instant(text)


@pytest.mark.parametrize(
    ("layout", "name", "requested", "action", "state", "completion"),
    [
        (LAYOUT_1, "20240101000000000.commit", "20240101000000000", "commit", "COMPLETED", None),
        (LAYOUT_1, "20240101000000000.inflight", "20240101000000000", "commit", "INFLIGHT", None),
        (LAYOUT_1, "20240101000000.commit.requested", "20240101000000", "commit", "REQUESTED", None),
        (LAYOUT_1, "20240101000000000010.deltacommit", "20240101000000000010", "deltacommit", "COMPLETED", None),
        (LAYOUT_2, "20240101000000000.inflight", "20240101000000000", "commit", "INFLIGHT", None),
        (
            LAYOUT_2,
            "00000000000000000_20240101000000001.deltacommit",
            "0" * 17,
            "deltacommit",
            "COMPLETED",
            "20240101000000001",
        ),
        (LAYOUT_2, "20240101000000000.clustering.requested", "20240101000000000", "clustering", "REQUESTED", None),
        (
            LAYOUT_2,
            "20240101000000000_20240101000000001.savepoint",
            "20240101000000000",
            "savepoint",
            "COMPLETED",
            "20240101000000001",
        ),
    ],
)
def test_parsing_names(layout: Layout, name: str, requested: str, action: str, state: str, completion: str | None):
    assert layout.parse(name) == Instant(requested, action, State(state), completion, name)
    parsed = layout.parse(name)
    assert parsed is not None
    assert parsed.completion == completion


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "_version_",
        "manifest_1",
        "20240101000000000.unknown",
        "20240101000000000_20240101000000001.commit.requested",
        ".20240101000000000.commit.crc",
        "20240101000000000.commit.tmp",
        "2024.commit",
        "commit",
        "",
    ],
)
@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2])
def test_other_files(layout: Layout, name: str):
    assert layout.parse(name) is None


@given(st.sampled_from([LAYOUT_1, LAYOUT_2]), moments, st.sampled_from(sorted(ACTIONS)), st.sampled_from(State))
def test_names_round_trip(layout: Layout, moment: datetime, action: str, state: State):
    requested = format_instant(moment)
    completion = next_instant(requested) if state is State.COMPLETED and layout.version == 2 else None
    name = layout.file_name(requested, action, state, completion)
    parsed = layout.parse(name)
    assert parsed is not None
    assert (parsed.requested, parsed.state, parsed.completion) == (requested, state, completion)
    assert parsed.family == completed_action(action)
    assert layout.file_name(requested, parsed.action, state, completion) == name


def test_table_services_complete_under_another_name():
    t = "20240101000000000"
    assert LAYOUT_1.file_name(t, "compaction", State.COMPLETED) == f"{t}.commit"
    assert LAYOUT_1.file_name(t, "logcompaction", State.COMPLETED) == f"{t}.deltacommit"
    assert LAYOUT_1.file_name(t, "clustering", State.REQUESTED) == f"{t}.replacecommit.requested"
    assert LAYOUT_2.file_name(t, "clustering", State.REQUESTED) == f"{t}.clustering.requested"
    assert LAYOUT_2.file_name(t, "clustering", State.COMPLETED, t) == f"{t}_{t}.replacecommit"


def test_layout_of_properties():
    assert Layout.from_properties({"hoodie.table.version": "6"}) == LAYOUT_1
    assert Layout.from_properties({"hoodie.table.version": "9"}) == LAYOUT_2
    assert Layout.from_properties({"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}) == LAYOUT_2
    moved = Layout.from_properties(
        {"hoodie.table.version": "8", "hoodie.timeline.path": "tl", "hoodie.timeline.history.path": "old"}
    )
    assert (moved.folder, moved.history) == (".hoodie/tl", ".hoodie/tl/old")
    assert Layout.from_properties({"hoodie.table.version": "6", "hoodie.archivelog.folder": "a"}).history == ".hoodie/a"


def timeline(*names: str, layout: Layout = LAYOUT_1) -> Timeline:
    files = [layout.parse(name) for name in names]
    assert all(files)
    return Timeline.from_files(file for file in files if file is not None)


def t(n: int) -> str:
    return f"202401010000000{n:02d}"


def test_the_furthest_state_counts():
    seen = timeline(f"{t(1)}.commit", f"{t(1)}.commit.requested", f"{t(1)}.inflight", f"{t(2)}.inflight")
    assert [(i.requested, i.state) for i in seen] == [(t(1), "COMPLETED"), (t(2), "INFLIGHT")]


def test_a_completed_compaction_is_a_commit():
    seen = timeline(f"{t(1)}.compaction.requested", f"{t(1)}.compaction.inflight", f"{t(1)}.commit")
    assert [i.action for i in seen] == ["commit"]


def test_a_savepoint_does_not_hide_its_commit():
    seen = timeline(f"{t(1)}.commit", f"{t(1)}.savepoint")
    assert [i.action for i in seen] == ["commit", "savepoint"]
    found = seen.find(t(1))
    assert found is not None
    assert found.action == "commit"
    assert seen.find(t(1), "savepoint") == seen.last


def test_of_two_completed_files_the_earlier_counts():
    seen = timeline(f"{t(1)}_{t(5)}.commit", f"{t(1)}_{t(3)}.commit", layout=LAYOUT_2)
    assert seen.completion_of(t(1)) == t(3)


def test_parts():
    seen = timeline(
        f"{t(1)}.commit",
        f"{t(2)}.clean",
        f"{t(3)}.deltacommit.inflight",
        f"{t(4)}.compaction.requested",
        f"{t(5)}.commit",
    )
    assert [i.requested for i in seen.completed()] == [t(1), t(2), t(5)]
    assert [i.requested for i in seen.writes()] == [t(1), t(3), t(4), t(5)]
    assert [i.requested for i in seen.pending()] == [t(3), t(4)]
    assert [i.requested for i in seen.completed().writes().after(t(1)).up_to(t(5))] == [t(5)]
    assert [i.requested for i in seen.of_actions("compaction")] == [t(4)]
    assert seen.first is not None
    assert seen.first.requested == t(1)
    assert t(3) in seen
    assert t(9) not in seen
    assert not Timeline()
    assert Timeline().last is None


def test_order_of_completion():
    seen = timeline(f"{t(1)}_{t(9)}.commit", f"{t(2)}_{t(3)}.commit", f"{t(4)}.inflight", layout=LAYOUT_2)
    assert [i.requested for i in seen.by_completion()] == [t(2), t(1)]


class TestWhatCounts:
    def test_completed_or_archived(self):
        seen = timeline(f"{t(3)}.commit", f"{t(4)}.inflight", f"{t(5)}.commit")
        done = seen.completed().writes()
        assert done.contains_or_before_start(t(3))
        assert done.contains_or_before_start(t(1))
        assert not done.contains_or_before_start(t(4))
        assert not done.contains_or_before_start(t(6))

    def test_a_part_remembers_where_the_whole_starts(self):
        seen = timeline(f"{t(3)}.commit", f"{t(5)}.commit")
        assert seen.after(t(3)).start == t(3)
        assert not seen.after(t(3)).contains_or_before_start(t(3))
        assert seen.up_to(t(3)).contains_or_before_start(t(2))
        assert not seen.up_to(t(3)).contains_or_before_start(t(5))

    def test_a_pending_write_before_all_others_never_counts(self):
        seen = timeline(f"{t(1)}.inflight", f"{t(3)}.commit")
        assert not seen.completed().contains_or_before_start(t(1))
        assert seen.completed().contains_or_before_start(t(2))

    def test_nothing_counts_before_anything_is_completed(self):
        assert not timeline(f"{t(3)}.inflight").contains_or_before_start(t(1))
        assert not Timeline().is_before_start(t(1))

    def test_archival_may_pass_a_savepoint(self):
        seen = timeline(f"{t(1)}.commit", f"{t(1)}.savepoint", f"{t(4)}.commit")
        assert seen.start == t(4)
        assert seen.contains_or_before_start(t(2))

    def test_a_restore_may_leave_nothing_but_saved_commits(self):
        seen = timeline(
            f"{t(2)}.commit", f"{t(2)}.savepoint", f"{t(4)}.commit", f"{t(4)}.savepoint", f"{t(3)}.inflight"
        )
        assert seen.start == t(4)
        assert seen.contains_or_before_start(t(1))
        assert not seen.contains_or_before_start(t(3))
        assert not seen.contains_or_before_start(t(5))
