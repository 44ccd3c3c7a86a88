"""What a writer was told of its commit is true, whatever the storage answered and whoever took the writer for dead."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import CommitStateUnknownError, ConflictError, StorageError, TransactionError, UnansweredError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.fencing.publication_intent import PublicationIntent
from pyhudi.timeline.fencing.write_fence import FENCES_FOLDER
from pyhudi.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path
from pyhudi.timeline.instant import State
from pyhudi.timeline.plans.rollback_plan import RollbackPlan
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from tests.fault_injection import Fault, FaultyStorage, Killed
from tests.unit.transaction.tables import MULTI_WRITER, OPTIONS, Write, active, check_clean, data_files, make_table

COMPLETED = r"\d\.commit$"


def age_heartbeats(storage: Storage) -> None:
    """Let all writers seem dead."""
    for path in storage.list(HEARTBEAT_FOLDER)["path"].to_pylist():
        os.utime(storage.uri(path).removeprefix("file://"), (0, 0))


class LateStorage(FaultyStorage):
    """Gives no answer to the publication of a write, and does it when it is told to."""

    late: tuple[str, bytes] | None = None

    def create(self, path: str, data: bytes) -> None:
        if self.late is None and path.endswith(".commit"):
            self.late = (path, data)
            raise UnansweredError(f"no answer to {path!r}")
        super().create(path, data)

    def arrive(self) -> None:
        assert self.late is not None
        self.inner.create(*self.late)


class TestARollbackThatBegan:
    @pytest.mark.parametrize("options", [OPTIONS, MULTI_WRITER], ids=["single", "several"])
    def test_its_write_is_not_committed(self, tmp_path: Path, version: int, options: dict[str, str]):
        """Another writer takes this one for dead and dies anywhere in its rollback; then this one wakes up."""
        began = 0
        for nth in range(1, 40):
            folder = tmp_path / "t"
            shutil.rmtree(folder, ignore_errors=True)
            storage = open_storage(folder, {"pyhudi.storage.fsync": "none"})
            make_table(storage, version)
            Write(options=options).run(storage)
            slow = Write(options=options)
            tx = slow.begin(storage)
            metadata = slow.write_files(tx)
            age_heartbeats(storage)
            other = FaultyStorage(storage, [Fault("writes", nth, "after", Killed)])
            try:
                Write(options=options).begin(other)
            except Killed:
                pass
            else:
                break
            rolled_back = bool(active(storage).timeline.of_actions("rollback"))
            began += rolled_back
            if rolled_back:
                with pytest.raises(ConflictError, match="rolled it back"):
                    tx.commit(metadata)
                tx.abort()
                assert len(active(storage).timeline.of_actions("rollback")) == 1, "the same rollback is gone on with"
            else:
                assert isinstance(tx.commit(metadata), Committed)
            age_heartbeats(storage)
            Write().run(storage)
            check_clean(storage)
            assert (tx.instant in active(storage).timeline) != rolled_back
        assert began > 3

    def test_a_writer_that_had_only_announced_itself_does_not_go_on(self, storage: Storage):
        """Of several single writers the next one takes all others for dead."""
        one, two = Write().begin(storage), Write().begin(storage)
        with pytest.raises(ConflictError, match=r"hoodie\.write\.concurrency\.mode=OPTIMISTIC") as raised:
            one.to_inflight()
        (rollback,) = active(storage).timeline.of_actions("rollback")
        for text in (one.instant, two.instant, rollback.requested):
            assert text in str(raised.value)
        one.abort()
        assert one.instant not in active(storage).timeline
        assert isinstance(two.commit(Write().write_files(two)), Committed)
        check_clean(storage)

    def test_three_single_writers_at_once(self, storage: Storage):
        """Nothing is both committed and rolled back, whether the loser finds out in its tasks or in its driver."""
        outcomes: dict[str, Any] = {}

        def run(name: str) -> None:
            try:
                outcomes[name] = Write().run(storage)
            except TransactionError as error:
                outcomes[name] = error

        threads = [threading.Thread(target=run, args=(str(n),)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        Write().run(storage)
        check_clean(storage)
        now = active(storage)
        undone = {
            RollbackPlan.decode(now.read_state(rollback, State.REQUESTED)).instant
            for rollback in now.timeline.of_actions("rollback")
        }
        done = {instant.requested for instant in now.timeline.completed().writes()}
        committed = {outcome.instant.requested for outcome in outcomes.values() if isinstance(outcome, Committed)}
        assert len(outcomes) == 3
        assert committed <= done
        assert not undone & done

    @pytest.mark.parametrize("at", ["before", "after"])
    def test_a_task_that_goes_on_leaves_no_file(self, storage: Storage, at: str):
        """A task is between its marker and its file, or its file and the last look, when its write is rolled back."""
        write, others = Write(), []

        class Slept(FaultyStorage):
            def write(self, path: str, data: bytes) -> None:
                if at == "after":
                    super().write(path, data)
                if not path.startswith(".hoodie/"):
                    others.append(Write().run(self.inner))
                if at == "before":
                    super().write(path, data)

        tx = write.begin(Slept(storage))
        with pytest.raises(TransactionError, match="rolled back while this task was still running"):
            write.write_files(tx)
        assert len(others) == 1
        check_clean(storage)
        with pytest.raises(ConflictError, match="rolled it back"):
            tx.to_inflight()
        tx.abort()
        check_clean(storage)
        assert tx.instant not in active(storage).timeline

    def test_a_rollback_is_given_up_when_the_write_was_faster(self, storage: Storage):
        """Whoever rolls back may have slept, too, and without the lock."""
        slow = Write()
        tx = slow.begin(storage)
        metadata = slow.write_files(tx)

        class Sleepy(FaultyStorage):
            def create(self, path: str, data: bytes) -> None:
                if path.endswith("rollback.requested"):
                    now = active(self.inner)
                    entry = now.timeline.find(tx.instant)
                    assert entry is not None
                    done = tx.instant[:-3] + "999" if now.layout.version >= 2 else None
                    now.complete(entry, metadata.encode(tx.config.version, "commit"), done)
                super().create(path, data)

        other = Write()
        assert isinstance(other.run(Sleepy(storage)), Committed)
        timeline = active(storage).timeline
        assert timeline.is_completed(tx.instant)
        assert not timeline.of_actions("rollback")
        assert len(data_files(storage)) == 4


class TestAPublicationWithoutAnswer:
    @pytest.mark.parametrize("options", [OPTIONS, MULTI_WRITER], ids=["single", "several"])
    def test_it_is_left_as_it_is(self, storage: Storage, options: dict[str, str]):
        late = LateStorage(storage)
        write = Write(options=options)
        tx = write.begin(late)
        with pytest.raises(CommitStateUnknownError, match=r"unknown.*next writer"), tx:
            tx.commit(write.write_files(tx))
        now = active(storage).timeline
        assert [(i.requested, i.state) for i in now.pending()] == [(tx.instant, State.INFLIGHT)]
        assert not now.of_actions("rollback")
        assert len(data_files(storage)) == 2
        assert not [t for t in threading.enumerate() if t.name.endswith(tx.instant)]
        assert storage.exists(heartbeat_path(tx.instant)) == (options is MULTI_WRITER)

    @pytest.mark.parametrize("before", [True, False], ids=["before the next writer", "after it"])
    def test_it_comes_late(self, storage: Storage, before: bool):
        """A write is committed or rolled back, and its files are there or not, together."""
        late = LateStorage(storage)
        with pytest.raises(CommitStateUnknownError):
            Write().run(late)
        (instant,) = (i.requested for i in active(storage).timeline)
        if before:
            late.arrive()
        Write().run(storage)
        if not before:
            late.arrive()
        Write().run(storage)
        check_clean(storage)
        assert active(storage).timeline.is_completed(instant) == before

    @pytest.mark.parametrize("nth", range(1, 12))
    def test_it_comes_while_it_is_rolled_back(self, storage: Storage, nth: int):
        late = LateStorage(storage)
        with pytest.raises(CommitStateUnknownError):
            Write().run(late)
        (instant,) = (i.requested for i in active(storage).timeline)

        class Meanwhile(FaultyStorage):
            def create(self, path: str, data: bytes) -> None:
                super().create(path, data)
                self._count()

            def delete(self, path: str) -> None:
                super().delete(path)
                self._count()

            def _count(self) -> None:
                self.latency += 1e-9
                if round(self.latency / 1e-9) == nth:
                    late.arrive()

        Write().run(Meanwhile(storage))
        Write().run(storage)
        check_clean(storage)
        rolled_back = bool(active(storage).timeline.of_actions("rollback"))
        assert (instant in active(storage).timeline) != rolled_back

    def test_it_was_done(self, storage: Storage):
        lost = FaultyStorage(storage, [Fault("create", 1, "after", UnansweredError, path=COMPLETED)])
        assert isinstance(Write().run(lost), Committed)
        check_clean(storage)

    def test_nor_can_be_looked_for(self, storage: Storage):
        """An error that is certain is not, if nobody can see whether the file is there."""
        faults = [Fault("create", 1, "after", StorageError, path=COMPLETED), Fault("read", 1, path=COMPLETED)]
        with pytest.raises(CommitStateUnknownError, match="reading the file failed"):
            Write().run(FaultyStorage(storage, faults))
        Write().run(storage)
        check_clean(storage)
        assert len(active(storage).timeline.writes()) == 2

    def test_what_is_certain_is_rolled_back(self, storage: Storage):
        full = FaultyStorage(storage, [Fault("create", 1, path=COMPLETED)])
        write = Write()
        with pytest.raises(StorageError, match="injected"), write.begin(full) as tx:
            tx.commit(write.write_files(tx))
        check_clean(storage)
        assert not active(storage).timeline.writes()


class TestAPublicationThatIsOnItsWay:
    """Writer one is given no answer, and writer two, which began before, changes the same file groups."""

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_it_does_not_hide_a_later_commit(self, storage: Storage, when: str):
        Write(("a",), file_ids={"a": "A"}, options=MULTI_WRITER).run(storage)
        ids = {"a": "A"}
        one, two = (Write(("a",), file_ids=ids, token=f"0-1-{n}", options=MULTI_WRITER) for n in (1, 2))
        late = LateStorage(storage)
        slow, fast = one.begin(late), two.begin(storage)
        written = two.write_files(fast)
        with pytest.raises(CommitStateUnknownError):
            slow.commit(one.write_files(slow))
        if when == "before":
            late.arrive()
            assert isinstance(fast.commit(written), Conflicted)
        else:
            assert isinstance(fast.commit(written), Committed)
            assert slow.instant not in active(storage).timeline
            late.arrive()
        age_heartbeats(storage)
        Write(("b",), options=MULTI_WRITER).run(storage)
        check_clean(storage)
        done = active(storage).timeline
        assert done.is_completed(slow.instant) == (when == "before")
        assert done.is_completed(fast.instant) == (when == "after")

    def test_writers_that_wait_for_the_lock_are_left_alone(self, storage: Storage):
        one, two = (Write(("a",), file_ids={"a": name}, options=MULTI_WRITER) for name in "AB")
        first, second = one.begin(storage), two.begin(storage)
        done = [one.write_files(first), two.write_files(second)]
        assert isinstance(first.commit(done[0]), Committed)
        assert isinstance(second.commit(done[1]), Committed)
        check_clean(storage)

    def test_its_sign_goes_with_its_rollback(self, storage: Storage):
        with pytest.raises(CommitStateUnknownError):
            Write(options=MULTI_WRITER).run(LateStorage(storage))
        (instant,) = (i.requested for i in active(storage).timeline)
        assert PublicationIntent(storage, instant).is_set()
        age_heartbeats(storage)
        Write(options=MULTI_WRITER).run(storage)
        assert storage.list(FENCES_FOLDER).num_rows == 0


class TestALookForARollbackThatFails:
    """Somebody who has lost the lock and does not know may have announced a rollback: who has it cannot be sure."""

    @pytest.mark.parametrize("failures", [1, 2])
    def test_the_writer_says_what_it_knows(self, storage: Storage, failures: int):
        write = Write()

        class Blind(FaultyStorage):
            left = -1

            def create(self, path: str, data: bytes) -> None:
                super().create(path, data)
                if path.endswith(".commit"):
                    self.left = failures

            def list(self, path: str = "", *, recursive: bool = False) -> Any:
                if self.left > 0:
                    self.left -= 1
                    raise UnansweredError(f"no answer to list {path!r}")
                return super().list(path, recursive=recursive)

        if failures == 1:
            assert isinstance(write.run(Blind(storage)), Committed)
        else:
            with pytest.raises(CommitStateUnknownError, match="check for a rollback failed"):
                write.run(Blind(storage))
        assert len(active(storage).timeline.completed().writes()) == 1


@pytest.mark.parametrize("provider", ["", "FileSystemBasedLockProvider"])
def test_after_the_publication_nothing_is_raised(tmp_path: Path, version: int, provider: str):
    """Who sees an error writes the rows again."""
    options = dict(MULTI_WRITER)
    if provider:
        options["hoodie.write.lock.provider"] = provider
    struck = 0
    for nth in range(1, 30):
        folder = tmp_path / "t"
        shutil.rmtree(folder, ignore_errors=True)
        storage = open_storage(folder, {"pyhudi.storage.fsync": "none"})
        make_table(storage, version)
        faulty = Afterwards(storage, nth)
        outcome = Write(options=options).run(faulty)
        assert isinstance(outcome, Committed)
        if not faulty.struck:
            break
        struck += 1
        if not provider:
            Write(options=OPTIONS).run(storage)
        assert len(active(storage).timeline.completed().writes()) == (1 if provider else 2)
    assert struck >= 4


class Afterwards(FaultyStorage):
    """Fails the operation of that number after the publication."""

    def __init__(self, inner: Storage, nth: int) -> None:
        super().__init__(inner)
        self.left, self.published, self.struck = nth, False, False

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        self.published = self.published or path.endswith(".commit")

    def _operation(self, operation: str, path: str) -> Any:
        if self.published:
            self.left -= 1
            if not self.left:
                self.struck = True
                raise StorageError(f"injected {operation} {path!r}")
        return super()._operation(operation, path)
