"""Random timelines of hand-made tables: late, failed, rolled back, clustered, overwritten, savepointed, cleaned and
archived writes. Snapshots, time travel and incremental queries agree with a plain model, or are refused for want of
files or because of a pending write."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError
from pyhudi.timeline.instant import Action
from tests.properties import examples
from tests.tables import HandMadeTable, at

Group = tuple[str, str]
Rows = dict[str, tuple[int, int]]
"""Value and commit of each key."""
OPTIONS = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.metadata.enable": "false"}
STRICT = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}


@dataclass
class Commit:
    """A completed write: the whole content of the groups that it has written, and the groups that it has replaced."""

    requested: int
    completed: int
    files: dict[Group, Rows]
    replaced: frozenset[Group] = frozenset()


@dataclass
class Model:
    """What a table holds. ``begun``: writes that will complete late; ``failed``: those that never will."""

    commits: list[Commit] = field(default_factory=list)
    begun: list[Commit] = field(default_factory=list)
    failed: list[Commit] = field(default_factory=list)

    def state(self, commits: list[Commit]) -> dict[Group, Rows]:
        """The live groups after some of the commits."""
        found: dict[Group, Rows] = {}
        for commit in sorted(commits, key=lambda commit: commit.requested):
            found |= commit.files
        gone = {group for commit in commits for group in commit.replaced}
        return {group: rows for group, rows in found.items() if group not in gone}

    def rows(self, commits: list[Commit]) -> Rows:
        return {key: row for rows in self.state(commits).values() for key, row in rows.items()}

    def free(self) -> list[Group]:
        """Live groups that no unfinished write changes."""
        taken = {group for one in (*self.begun, *self.failed) for group in (*one.files, *one.replaced)}
        return sorted(group for group in self.state(self.commits) if group not in taken)


class Timeline:
    """Applies random operations to a table and to its model."""

    action: str = Action.COMMIT

    def __init__(self, root: Path, version: int, numbers: Any, properties: dict[str, str] | None = None) -> None:
        self.table = HandMadeTable(root, version, properties=properties or {})
        self.model, self.version, self.draw = Model(), version, numbers
        self.now = self.keys = self.groups = 0
        self.archived = False
        self.kept_from = 0
        self.deleted: set[tuple[int, str, str]] = set()

    def tick(self) -> int:
        self.now += 1
        return self.now

    def some(self, groups: list[Group], most: int = 2) -> list[Group]:
        """A few of the groups."""
        chosen = {self.draw(st.integers(0, len(groups) - 1)) for _ in range(most)} if groups else set()
        return [groups[i] for i in sorted(chosen)]

    def new_group(self, partition: str) -> Group:
        self.groups += 1
        return partition, f"f{self.groups}-0"

    def changed(self, n: int) -> dict[Group, Rows]:
        """Updates and inserts of some groups, or a new group."""
        state, chosen = self.model.state(self.model.commits), self.some(self.model.free())
        if not chosen or self.draw(st.integers(0, 2)) == 0:
            chosen.append(self.new_group("ab"[self.draw(st.integers(0, 1))]))
        files = {}
        for group in chosen:
            rows = dict(state.get(group, {}))
            for key in [key for key in rows if self.draw(st.booleans())]:
                rows[key] = (n, n)
            self.keys += 1
            files[group] = {**rows, f"k{self.keys}": (n, n)}
        return files

    def publish(self, commit: Commit, operation: str = "UPSERT", *, pending: bool = False) -> None:
        files = {
            group: [{"id": key, "p": group[0], "v": value, "_n": n} for key, (value, n) in rows.items()]
            for group, rows in commit.files.items()
        }
        replaces = operation != "UPSERT"
        self.table.write(
            commit.requested,
            files,
            done=commit.completed,
            action=Action.REPLACE_COMMIT if replaces else self.action,
            operation=operation,
            replaced=sorted(commit.replaced),
            pending=pending,
        )
        if not pending:
            self.model.commits.append(commit)

    # --- operations --------------------------------------------------------------------------------------------------

    def write(self) -> None:
        n = self.tick()
        self.publish(Commit(n, self.tick(), self.changed(n)))

    def begin(self) -> None:
        n = self.tick()
        self.model.begun.append(Commit(n, 0, self.changed(n)))

    def finish(self) -> None:
        if self.model.begun:
            commit = self.model.begun.pop(self.draw(st.integers(0, len(self.model.begun) - 1)))
            commit.completed = self.tick()
            self.publish(commit, "INSERT_OVERWRITE" if commit.replaced else "UPSERT")

    def fail(self) -> None:
        n = self.tick()
        commit = Commit(n, 0, self.changed(n))
        self.publish(commit, pending=True)
        self.model.failed.append(commit)

    def roll_back(self) -> None:
        if self.model.failed:
            commit = self.model.failed.pop()
            HudiTable.for_path(str(self.table.root), OPTIONS).services.rollback(at(commit.requested))
            self.table.active = self.table.active.reload()

    def cluster(self) -> None:
        chosen = self.some(self.model.free())
        chosen = [group for group in chosen if group[0] == chosen[0][0]]
        if chosen:
            state = self.model.state(self.model.commits)
            rows = {key: row for group in chosen for key, row in state[group].items()}
            n = self.tick()
            made = {self.new_group(chosen[0][0]): rows}
            self.publish(Commit(n, self.tick(), made, frozenset(chosen)), "CLUSTER")

    def overwrite(self) -> None:
        chosen = self.some(self.model.free())
        if chosen:
            n = self.tick()
            self.keys += 1
            made = {self.new_group(chosen[0][0]): {f"k{self.keys}": (n, n)}}
            commit = Commit(n, self.now, made, frozenset(chosen))
            if self.draw(st.booleans()):
                self.model.begun.append(commit)
            else:
                commit.completed = self.tick()
                self.publish(commit, "INSERT_OVERWRITE")

    def savepoint(self) -> None:
        active = self.table.active.timeline
        there = [c for c in self.model.commits if active.find(at(c.requested)) is not None]
        there = [c for c in there if c.requested >= self.kept_from]  # snapshots of before are refused
        if there:
            chosen = there[self.draw(st.integers(0, len(there) - 1))]
            HudiTable.for_path(str(self.table.root), OPTIONS).services.savepoint(at(chosen.requested))
            self.table.active = self.table.active.reload()

    def clean(self) -> None:
        """Delete the files that no query since one of the commits needs, except those of savepoints."""
        commits = sorted(self.model.commits, key=lambda c: c.requested)
        unfinished = min((c.requested for c in (*self.model.begun, *self.model.failed)), default=self.now + 1)
        there = [c.requested for c in commits if self.kept_from <= c.requested < unfinished]
        if not there:
            return
        self.kept_from = there[self.draw(st.integers(0, len(there) - 1))]
        saved = {version for n in self.saved() for version in self.versions([c for c in commits if c.requested <= n])}
        kept = self.versions([c for c in commits if c.requested <= self.kept_from]) | saved
        kept |= {(c.requested, *group) for c in commits if c.requested >= self.kept_from for group in c.files}
        deleted = sorted({(c.requested, *group) for c in commits for group in c.files} - kept - self.deleted)
        self.deleted |= set(deleted)
        self.table.clean(self.tick(), keep_from=at(self.kept_from), deleted=deleted)

    def saved(self) -> list[int]:
        return [int(i.requested[-5:]) for i in self.table.active.timeline.of_actions(Action.SAVEPOINT)]

    def versions(self, commits: list[Commit]) -> set[tuple[int, str, str]]:
        """The files (commit, partition, file id) of the snapshot after some of the commits."""
        live = self.model.state(commits)
        newest = {group: c.requested for c in sorted(commits, key=lambda c: c.requested) for group in c.files}
        return {(newest[group], *group) for group in live}

    def archive(self) -> None:
        """Archive the oldest commits, up to the first that must stay."""
        if self.version < 8 or self.archived:
            return
        pending = min((c.requested for c in (*self.model.begun, *self.model.failed)), default=self.now + 1)
        saved = self.saved()
        ordered = sorted(self.model.commits, key=lambda c: c.requested)[:-1]
        numbers = []
        for commit in ordered[: self.draw(st.integers(0, len(ordered)))]:
            if commit.requested > pending or commit.replaced or commit.requested in saved:
                break
            numbers.append(commit.requested)
        if numbers:
            self.table.archive(*numbers)
            self.archived = True

    # --- queries -----------------------------------------------------------------------------------------------------

    def rows(self, **query: Any) -> Rows | None:
        """The rows of a query; None if it was refused."""
        columns = ["id", "v", "_hoodie_commit_time"]
        try:
            scan = HudiTable.for_path(str(self.table.root), STRICT).scan(columns=columns, **query)
            found = scan.to_arrow().to_pylist()
        except QueryError:
            return None
        rows = {row["id"]: (row["v"], int(row["_hoodie_commit_time"][-5:])) for row in found}
        assert len(rows) == len(found), f"records come twice in {query}"
        return rows

    def check(self) -> None:
        commits, now = self.model.commits, self.now
        assert self.rows() == self.model.rows(commits)
        first_failed = min((c.requested for c in self.model.failed), default=now + 1)
        for n in range(now + 1):
            found = self.rows(as_of=at(n))
            expected = self.model.rows([c for c in commits if c.requested <= n])
            refused = found is None and n < self.kept_from
            assert refused or (found == expected if n < first_failed else found is None), f"as of {n}"
        for begin in range(now + 1):
            for end in (*range(begin + 1, now), None):
                self.check_range(begin, end)

    def check_range(self, begin: int, end: int | None) -> None:
        def time(commit: Commit) -> int:
            return commit.completed if self.version >= 8 else commit.requested

        last = self.now if end is None else end
        wanted = {c.requested for c in self.model.commits if begin < time(c) <= last}
        state = self.model.rows([c for c in self.model.commits if time(c) <= last])
        expected = {key: row for key, row in state.items() if row[1] in wanted}
        found = self.rows(begin=at(begin), end=None if end is None else at(end))
        holes = self.version < 8 and self.model.failed
        # a write before what a clean has kept, that ends after the range, may have replaced what the clean has deleted
        late = any(c.requested <= last < time(c) and c.requested < self.kept_from for c in self.model.commits)
        refused = found is None and (holes or self.deleted or late)
        assert found == expected or refused, f"from {begin} to {end}"


class MergeOnReadTimeline(Timeline):
    """Updates and deletes are in log files, which compactions merge, also while late writes add others."""

    action = Action.DELTA_COMMIT

    def changed(self, n: int) -> dict[Group, Rows]:
        files = super().changed(n)
        state = self.model.state(self.model.commits)
        if not files.keys() & state.keys():
            return files
        # log files are written by a deltacommit of their own
        files = {group: rows for group, rows in files.items() if group in state}
        for rows in files.values():
            for key in [key for key, row in rows.items() if row != (n, n)][:1]:
                if self.draw(st.booleans()):
                    del rows[key]
        return files

    def publish(self, commit: Commit, operation: str = "UPSERT", *, pending: bool = False) -> None:
        before = self.model.state(self.model.commits)
        if operation != "UPSERT" or not commit.files.keys() <= before.keys():
            super().publish(commit, operation, pending=pending)
            return
        if pending:
            self.model.failed.append(commit)  # it has not come to a file
            return
        n = commit.requested
        new = {
            group: [{"id": key, "p": group[0], "v": v} for key, (v, at_) in rows.items() if at_ == n]
            for group, rows in commit.files.items()
        }
        gone = {group: sorted(before[group].keys() - rows.keys()) for group, rows in commit.files.items()}
        self.table.log(n, new, deletes=gone, done=commit.completed)
        self.model.commits.append(commit)

    def compact(self) -> None:
        state = self.model.state(self.model.commits)
        failed = {group for one in self.model.failed for group in one.files}
        chosen = self.some(sorted(group for group in state if group not in failed))
        if chosen:
            n = self.tick()
            files = {
                group: [{"id": key, "p": group[0], "v": v, "_n": at_} for key, (v, at_) in state[group].items()]
                for group in chosen
            }
            self.table.write(n, files, done=self.tick(), operation="COMPACT")


OPERATIONS = [
    *(Timeline.write, Timeline.write, Timeline.begin, Timeline.finish, Timeline.fail, Timeline.roll_back),
    *(Timeline.cluster, Timeline.overwrite, Timeline.savepoint, Timeline.archive, Timeline.clean),
]


LOGGED = [Timeline.write, Timeline.write, Timeline.begin, Timeline.finish, Timeline.overwrite]


@pytest.mark.parametrize("version", [6, 9])
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_queries_agree_with_a_model(version: int, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        timeline = Timeline(Path(folder) / "t", version, data.draw)
        for act in data.draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=12)):
            act(timeline)
        if timeline.model.commits:
            timeline.check()


def test_a_range_that_ends_while_a_compaction_runs(tmp_path: Path) -> None:
    """Its base file stands for that of the compaction in the range."""
    table = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": "MERGE_ON_READ"})
    rows = [{"id": "x", "p": "a", "v": 1, "_n": 1}]
    table.write(1, {("a", "f-0"): rows}, done=2, action=Action.DELTA_COMMIT)
    for n in (3, 5):
        table.write(n, {("a", "f-0"): rows}, done=n + 1, operation="COMPACT")
    scan = HudiTable.for_path(str(table.root), STRICT).scan
    assert [scan(begin=at(begin), end=at(5)).count() for begin in (1, 2)] == [1, 0]


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_queries_of_log_files_agree_with_a_model(data: st.DataObject) -> None:
    acts = [*LOGGED, MergeOnReadTimeline.compact]
    with tempfile.TemporaryDirectory() as folder:
        timeline = MergeOnReadTimeline(Path(folder) / "t", 9, data.draw, {"hoodie.table.type": "MERGE_ON_READ"})
        for act in data.draw(st.lists(st.sampled_from(acts), min_size=1, max_size=12)):
            act(timeline)
        if timeline.model.commits:
            timeline.check()
