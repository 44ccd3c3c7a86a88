"""What a table must hold: its records by key and partition, and those after each of its commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tests.random_sequences.rows import IS_DELETED, PARTITION_COLUMNS, Row, schema_of
from tests.random_sequences.table_kinds import (
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    FILLING,
    NON_DEFAULTS,
    PARTIAL,
    TableKind,
)

Place = tuple[int, str]
"""Number of a record's key, and partition path."""


@dataclass(frozen=True)
class Stored:
    """A record: its row, the instant that wrote it (None: not known exactly), and whether values of it came from an
    older version."""

    row: Row
    instant: str | None = None
    filled: bool = False


Records = dict[Place, Stored]


@dataclass(frozen=True)
class Commit:
    """A commit: its requested and completion times (the same in version 6), the table after it, what it replaced, and
    where versions of it lost. ``is_alone``: no other write was at work, so that the times of both tell their order."""

    instant: str
    completion: str
    records: Records
    schema: pa.Schema
    replaced: frozenset[Place] = frozenset()
    lost: frozenset[Place] = frozenset()
    is_alone: bool = True


@dataclass
class TableModel:
    """A table. ``history`` has the commits that queries may go back to, ``before`` what was there before them."""

    kind: TableKind
    version: int = 0
    records: Records = field(default_factory=dict)
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    history: list[Commit] = field(default_factory=list)
    before: Records = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    lost: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.version = self.version or self.kind.version
        self.schema = schema_of(self.kind)

    # --- what may be written -----------------------------------------------------------------------------------------

    def place_of(self, number: int, place: int) -> Place:
        """Return where a row belongs."""
        return number, self.kind.layout.path(place)

    def stored_at(self, where: Place) -> Place | None:
        """Return where the record of a row's key is, or None."""
        if not self.kind.is_global:
            return where if where in self.records else None
        return next((place for place in self.records if place[0] == where[0]), None)

    def is_new(self, number: int) -> bool:
        """Whether no partition has this key."""
        return all(place[0] != number for place in self.records)

    def must_win(self, where: Place) -> bool:
        """Whether the outcome of a late version would depend on which versions are in one file.

        Versions after a delete, which base files forget, have to be later than all before, and complete.
        """
        at = self.stored_at(where)
        if not self.kind.merge_on_read:
            return False
        filled = at is not None and self.kind.merging == PARTIAL and self.records[at].filled
        return where[0] in self.deleted or filled

    # --- writes ------------------------------------------------------------------------------------------------------

    def upsert(self, rows: Iterable[tuple[Place, Row]]) -> Records:
        """Return the records after an upsert of rows, of which each may be marked as deleted."""
        found = dict(self.records)
        for where, row in self._combined(rows):
            self.highest[where[0]] = max(self.highest.get(where[0], 0), row["seq"])
            at = self._in(found, where)
            if row.get(IS_DELETED):
                self.deleted.add(where[0])
                if at is not None and self._delete_counts(found[at].row, row):
                    del found[at]
                continue
            if at is None:
                found[where] = Stored(row)
                continue
            merged = self._merged(found[at], row)
            target = self._target(at, where, merged, found[at])
            if target == at and at != where:
                merged = self._kept_in(found[at], merged)
            if merged is found[at]:
                self.lost |= {at, where}
            else:
                del found[at]
                found[target] = merged
        return found

    def insert(self, rows: Iterable[tuple[Place, Row]], records: Records | None = None) -> Records:
        """Return the records with rows of other keys, in addition to these ones (None: those of now)."""
        found = dict(self.records if records is None else records)
        for where, row in rows:
            self.highest[where[0]] = max(self.highest.get(where[0], 0), row["seq"])
            found[where] = Stored(row)
        return found

    def delete(self, places: Iterable[Place]) -> Records:
        """Return the records without some keys."""
        found = dict(self.records)
        for where in places:
            at = self._in(found, where)
            if at is not None:
                self.deleted.add(where[0])
                del found[at]
        return found

    def without(self, paths: Collection[str]) -> Records:
        """Return the records of other partitions."""
        return {place: stored for place, stored in self.records.items() if place[1] not in paths}

    def changed(self, change: Callable[[Row], Row | None]) -> Records:
        """Return the records after a statement that changes rows: ``change`` returns the new row, the same, or None."""
        found: Records = {}
        for place, stored in self.records.items():
            row = change(stored.row)
            if row is None:
                self.deleted.add(place[0])
            else:
                found[place] = stored if row is stored.row else Stored(row, filled=stored.filled)
        return found

    def commit(
        self,
        records: Records,
        instant: str,
        completion: str,
        *,
        replaced: Collection[Place] = (),
        is_alone: bool = True,
    ) -> None:
        """Let a commit have made the records what they are."""
        known = self.kind.merging not in FILLING
        self.records = {
            place: stored if stored.instant is not None else replace(stored, instant=instant if known else "")
            for place, stored in records.items()
        }
        lost, self.lost = frozenset(self.lost), set()
        self.history.append(Commit(instant, completion, self.records, self.schema, frozenset(replaced), lost, is_alone))

    def go_back_to(self, number: int) -> None:
        """Undo the commits after ``history[number]`` (-1: all)."""
        self.history = self.history[: number + 1]
        self.records = self.history[-1].records if self.history else self.before
        if self.history:
            self.schema = self.history[-1].schema

    def add_column(self, name: str) -> None:
        """Add a text column, which is null in all records."""
        self.schema = self.schema.append(pa.field(name, pa.string()))

    def rename_column(self, name: str, new: str) -> None:
        """Give a column another name in all records."""
        at = self.schema.get_field_index(name)
        self.schema = self.schema.set(at, self.schema.field(at).with_name(new))
        self._change_rows(lambda row: {new if key == name else key: value for key, value in row.items()})

    def drop_column(self, name: str) -> None:
        """Take a column out of all records."""
        self.schema = self.schema.remove(self.schema.get_field_index(name))
        self._change_rows(lambda row: {key: value for key, value in row.items() if key != name})

    def _change_rows(self, change: Callable[[Row], Row]) -> None:
        self.records = {place: replace(stored, row=change(stored.row)) for place, stored in self.records.items()}

    def forget_history(self) -> None:
        """Let queries go back to no commit so far."""
        self.history, self.before = [], self.records

    # --- queries -----------------------------------------------------------------------------------------------------

    def lost_between(self, begin: int, end: int) -> set[Place]:
        """Return where commits after ``history[begin]`` up to ``history[end]`` wrote versions that lost."""
        return set().union(*(commit.lost for commit in self.history[begin + 1 : end + 1]))

    def changes_between(self, begin: int, end: int) -> Records:
        """Return the records that commits after ``history[begin]`` up to ``history[end]`` have written, as of the
        latter."""
        instants = {commit.instant for commit in self.history[begin + 1 : end + 1]}
        return {place: stored for place, stored in self.history[end].records.items() if stored.instant in instants}

    def change_data(self, begin: int, end: int) -> list[tuple[str, str, Row | None, Row | None]]:
        """Return the operations of these commits: ``i``, ``u`` or ``d``, instant, row before and after."""
        found: list[tuple[str, str, Row | None, Row | None]] = []
        for number in range(begin + 1, end + 1):
            commit = self.history[number]
            before = self.history[number - 1].records if number else self.before
            for place in before.keys() | commit.records.keys():
                old, new = before.get(place), commit.records.get(place)
                if old is new or (old is not None and new is not None and old.row == new.row):
                    continue
                if old is not None and (new is None or place in commit.replaced):
                    found.append(("d", commit.instant, old.row, None))
                if new is not None and (old is None or place in commit.replaced):
                    found.append(("i", commit.instant, None, new.row))
                if old is not None and new is not None and place not in commit.replaced:
                    found.append(("u", commit.instant, old.row, new.row))
        return found

    # --- merging -----------------------------------------------------------------------------------------------------

    def _in(self, records: Records, where: Place) -> Place | None:
        if where in records or not self.kind.is_global:
            return where if where in records else None
        return next((place for place in records if place[0] == where[0]), None)

    def _combined(self, rows: Iterable[tuple[Place, Row]]) -> list[tuple[Place, Row]]:
        """Return one row for each key of a batch."""
        found: dict[Any, tuple[Place, Row]] = {}
        for where, row in rows:
            key = where[0] if self.kind.is_global else where
            before = found.get(key)
            found[key] = (where, row) if before is None else self._combined_two(before, (where, row))
        return list(found.values())

    def _combined_two(self, older: tuple[Place, Row], newer: tuple[Place, Row]) -> tuple[Place, Row]:
        """Return what two rows of a key in one batch are together."""
        merging = self.kind.merging
        last_wins = (merging == COMMIT_TIME and self.version >= 8) or (merging == NON_DEFAULTS and self.version >= 9)
        late = not last_wins and newer[1]["seq"] < older[1]["seq"]
        (where, first), (_, second) = (older, newer) if late else (newer, older)
        if merging not in FILLING or (merging == NON_DEFAULTS and self.version < 9):
            return where, first
        if first.get(IS_DELETED):  # below version 9 the newer one is the result, even if it is late
            return newer if self.version < 9 else (where, first)
        if second.get(IS_DELETED) and self.version >= 9:
            return where, first
        return where, {name: second[name] if value is None else value for name, value in first.items()}

    def _delete_counts(self, old: Row, new: Row) -> bool:
        ordered = self.kind.merging == EVENT_TIME or (self.kind.merging == PARTIAL and self.version >= 9)
        return not ordered or new["seq"] >= old["seq"]

    def _merged(self, old: Stored, new: Row) -> Stored:
        merging = self.kind.merging
        if merging == COMMIT_TIME:
            return Stored(new)
        if merging == CUSTOM:
            return Stored({**new, "tag": old.row["tag"] + new["tag"]})
        late = merging != NON_DEFAULTS and new["seq"] < old.row["seq"]
        if merging == EVENT_TIME:
            return old if late else Stored(new)
        first, second = (old.row, new) if late else (new, old.row)
        fills = {name: value for name, value in second.items() if first.get(name) is None and value is not None}
        row = {**first, **fills}
        if late:
            return replace(old, row=row) if fills else old
        return Stored(row, filled=any(value is None for value in first.values()))

    def _target(self, at: Place, where: Place, merged: Stored, old: Stored) -> Place:
        """Return where the record is after an update whose row belongs to ``where``."""
        stays = not self.kind.moves or merged.row["tag"] == old.row["tag"]
        return at if stays else where

    def _kept_in(self, old: Stored, merged: Stored) -> Stored:
        """Return a record that stays in its partition, whose columns it keeps."""
        if merged is old:
            return old
        return replace(merged, row={**merged.row, **{name: old.row[name] for name in self._partition_columns}})

    @property
    def _partition_columns(self) -> list[str]:
        named = self.kind.layout.options["hoodie.datasource.write.partitionpath.field"].split(",")
        return [name for name in PARTITION_COLUMNS if name in {field.partition(":")[0] for field in named}]
