"""When compaction is due, by every trigger."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.config import Options
from pyhudi.services.compaction.compaction_triggers import evaluate_compaction_trigger
from pyhudi.timeline.delta_commits import delta_commits_since_compaction, delta_commits_since_plan
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.timeline import Timeline

TRIGGER = "hoodie.compact.inline.trigger.strategy"


def at(second: int) -> str:
    return f"202601010{second // 3600:01d}{second // 60 % 60:02d}{second % 60:02d}000"


def instant(second: int, action: str, state: State = State.COMPLETED, *, took: int = 0, version: int = 9) -> Instant:
    done = at(second + took) if state is State.COMPLETED and version >= 8 else None
    return Instant(at(second), action, state, done, f"{second}.{action}")


def due(timeline: Timeline, now: int, **options: object) -> bool:
    names = {"trigger": TRIGGER, "commits": "hoodie.compact.inline.max.delta.commits"}
    names |= {"seconds": "hoodie.compact.inline.max.delta.seconds"}
    return bool(
        evaluate_compaction_trigger(timeline, at(now), Options.parse({names[k]: v for k, v in options.items()}))
    )


DELTAS = Timeline([instant(i, "deltacommit") for i in (10, 20, 30)])


@pytest.mark.parametrize(
    ("trigger", "now", "expected"),
    [
        ("NUM_COMMITS", 31, True),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", 31, True),
        ("TIME_ELAPSED", 31, False),
        ("TIME_ELAPSED", 110, True),
        ("NUM_AND_TIME", 31, False),
        ("NUM_AND_TIME", 110, True),
        ("NUM_OR_TIME", 31, True),
    ],
)
def test_never_compacted(trigger: str, now: int, expected: bool):
    assert due(DELTAS, now, trigger=trigger, commits=3, seconds=100) is expected
    if not trigger.endswith("TIME"):
        assert not due(DELTAS, now, trigger=trigger, commits=4, seconds=1000)


def test_five_commits_by_default():
    assert not due(Timeline([instant(i, "deltacommit") for i in range(4)]), 5)
    assert due(Timeline([instant(i, "deltacommit") for i in range(5)]), 5)


def test_nothing_written():
    for trigger in ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "NUM_OR_TIME"):
        assert not due(Timeline(), 10**4, trigger=trigger)


def test_commits_are_counted_by_completion():
    """A delta commit that began before the compaction was planned and ended after it belongs to the slice after it."""
    both = [instant(10, "commit", took=20), instant(5, "deltacommit", took=10), instant(2, "deltacommit", took=1)]
    assert delta_commits_since_compaction(Timeline(both)).count == 1
    old = [instant(10, "commit", version=6), instant(5, "deltacommit", version=6)]
    assert delta_commits_since_compaction(Timeline(old)).count == 0


def test_a_pending_compaction_counts_for_requests_alone():
    timeline = Timeline([*DELTAS, instant(15, "compaction", State.REQUESTED)])
    assert delta_commits_since_compaction(timeline).count == 3
    assert delta_commits_since_plan(timeline).count == 2
    assert not due(timeline, 40, trigger="NUM_COMMITS_AFTER_LAST_REQUEST", commits=3)


def test_pending_commits_do_not_count():
    timeline = Timeline([*DELTAS, instant(40, "deltacommit", State.INFLIGHT)])
    assert delta_commits_since_compaction(timeline).count == 3


lives = st.lists(
    st.tuples(st.integers(0, 3000), st.sampled_from(["deltacommit", "deltacommit", "commit", "compaction", "clean"])),
    max_size=12,
    unique_by=lambda pair: pair[0],
)


@given(lives, st.integers(3000, 3600), st.integers(1, 6), st.integers(1, 4000))
def test_triggers_agree(life: list[tuple[int, str]], now: int, commits: int, seconds: int):
    timeline = Timeline(
        [instant(s, a, State.REQUESTED if a == "compaction" else State.COMPLETED, took=1) for s, a in life]
    )
    by = {
        name: due(timeline, now, trigger=name, commits=commits, seconds=seconds)
        for name in ("NUM_COMMITS", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME", "NUM_COMMITS_AFTER_LAST_REQUEST")
    }
    assert by["NUM_AND_TIME"] == (by["NUM_COMMITS"] and by["TIME_ELAPSED"])
    assert by["NUM_OR_TIME"] == (by["NUM_COMMITS"] or by["TIME_ELAPSED"])
    if by["NUM_COMMITS_AFTER_LAST_REQUEST"] and not any(a == "commit" for _, a in life):
        assert by["NUM_COMMITS"]
