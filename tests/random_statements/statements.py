"""Random statements in the life of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TypeVar

from tests.random_statements.expressions import ATOMIC, LITERALS, STRUCT, Expressions

_Value = TypeVar("_Value")
_WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE"}


class Kind(StrEnum):
    """Kinds of statements."""

    CHANGE = "change"
    QUERY = "query"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and the one that does the same in Apache Iceberg; None: no other rows, so there is none."""

    kind: Kind
    text: str
    iceberg: str | None

    @classmethod
    def both(cls, kind: Kind, text: str) -> Statement:
        """Return a statement that is the same for both."""
        return cls(kind, text, text)


class RandomTable:
    """A table that random statements create and change; its seed determines all of them.

    Keys are unique and determine the partition, because Apache Iceberg knows no keys: an INSERT only adds new ones, and
    a MERGE that inserts compares all of them.
    """

    def __init__(self, seed: int) -> None:
        self.name = f"t{seed}"
        self.random = random = Random(seed)
        self.columns: dict[str, str] = {}
        self._ids: list[int] = []
        self._new_columns = 0
        self._clusters = True
        self.is_merge_on_read, self.is_keyed = random.random() < 0.5, random.random() < 0.85
        self.has_two_keys = self.is_keyed and random.random() < 0.25
        self.evolves = random.random() < 0.4
        self.columns["id"] = random.choice(["INT", "STRING", "BIGINT"])
        if self.has_two_keys:
            self.columns["id2"] = random.choice(["STRING", "DATE", "INT"])
        for number in range(random.randint(2, 5)):
            self.columns[f"c{number}"] = random.choice([*LITERALS, "INT", "INT", "INT"])
        partition = random.choice([None, None, "STRING", "DATE", "INT", "BIGINT"])
        if partition is not None:
            self.columns["p"] = partition

    def statements(self, count: int) -> Iterator[Statement]:
        """Yield the creation of the table, and ``count`` other statements, with queries after each of them."""
        yield self._create()
        yield self._insert()
        for _ in range(count):
            yield self._change()
            yield self._query("")
            if self.random.random() < 0.5:
                yield self._query(f" WHERE {self._expressions.condition(subqueries=True)}")

    @property
    def _expressions(self) -> Expressions:
        return Expressions(self.random, self.name, self.columns)

    def _change(self) -> Statement:
        chance = self.random.random()
        if chance < 0.17:
            return self._insert()
        if chance < 0.37:
            return Statement.both(Kind.CHANGE, self._update())
        if chance < 0.5:
            return self._delete()
        if chance < 0.9:
            return Statement.both(Kind.CHANGE, self._alter() if self.evolves and chance > 0.82 else self._merge())
        if chance < 0.92 and "p" in self.columns:
            condition = f"p = {self._partition(self.random.randint(1, 3))}"
            drop = f"ALTER TABLE {self.name} DROP PARTITION ({condition})"
            return Statement(Kind.CHANGE, drop, f"DELETE FROM {self.name} WHERE {condition}")
        if chance < 0.93:
            return Statement(Kind.CHANGE, f"TRUNCATE TABLE {self.name}", f"DELETE FROM {self.name}")
        return Statement(Kind.SERVICE, self._service(), None)

    def _create(self) -> Statement:
        random, properties = self.random, {"type": "mor" if self.is_merge_on_read else "cow"}
        if self.is_keyed:
            properties["primaryKey"] = "id,id2" if self.has_two_keys else "id"
            properties |= random.choice(
                [
                    {},
                    {},
                    {"hoodie.index.type": "BLOOM"},
                    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
                    {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
                ]
            )
        if self.is_merge_on_read:
            properties["hoodie.compact.inline"] = random.choice(["true", "false"])
            properties["hoodie.compact.inline.max.delta.commits"] = str(random.choice([2, 3, 5]))
        elif self.is_keyed and random.random() < 0.2:
            properties["hoodie.table.cdc.enabled"] = "true"
        if random.random() < 0.2:
            properties["hoodie.datasource.write.hive_style_partitioning"] = "false"
        if random.random() < 0.3:
            properties["hoodie.parquet.small.file.limit"] = "0"
        if random.random() < 0.3:
            properties["hoodie.write.table.version"] = random.choice(["6", "8"])
        self._clusters = properties.get("hoodie.index.type") != "BUCKET"
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        by = " PARTITIONED BY (p)" if "p" in self.columns else ""
        given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        return Statement(
            Kind.CHANGE,
            f"CREATE TABLE {self.name} ({columns}) USING hudi{by} TBLPROPERTIES ({given})",
            f"CREATE TABLE {self.name} ({columns}) USING iceberg{by}",
        )

    def _query(self, where: str) -> Statement:
        return Statement.both(Kind.QUERY, f"SELECT {', '.join(self.columns)} FROM {self.name}{where}")

    def _service(self) -> str:
        services = [f"CALL run_clean(table => '{self.name}', retain_commits => 2)"]
        if self._clusters:
            services.append(f"CALL run_clustering(table => '{self.name}')")
        if self.is_merge_on_read:
            services.append(f"CALL run_compaction(op => 'scheduleAndExecute', table => '{self.name}')")
        return self.random.choice(services)

    def _insert(self) -> Statement:
        rows, names = [self._row(number) for number in self._added(self.random.randint(1, 4))], list(self.columns)
        if self.random.random() < 0.6:
            # Apache Iceberg has added columns after the partition columns
            own, named = (f"INSERT INTO {self.name}{listed}" for listed in ("", f" ({', '.join(names)})"))
            return Statement(Kind.CHANGE, f"{own} {self._selected(rows)}", f"{named} {self._selected(rows)}")
        self.random.shuffle(names)
        values = ", ".join(f"({', '.join(row[name] for name in names)})" for row in rows)
        return Statement.both(Kind.CHANGE, f"INSERT INTO {self.name} ({', '.join(names)}) VALUES {values}")

    def _update(self) -> str:
        expressions = self._expressions
        assignments = []
        for name in self._some(expressions.assignable, 3):
            if self.columns[name] == STRUCT and self.random.random() < 0.5:
                assignments.append(f"{name}.a = {self.random.randint(0, 9)}")
            else:
                assignments.append(f"{name} = {expressions.assigned(name)}")
        where = f" WHERE {expressions.condition(subqueries=True)}" if self.random.random() < 0.93 else ""
        return f"UPDATE {self.name} SET {', '.join(assignments)}{where}"

    def _delete(self) -> Statement:
        delete = f"DELETE FROM {self.name} WHERE {self._expressions.condition(subqueries=True)}"
        # whole files, which Apache Iceberg deletes by their statistics, include nulls where `c <> 1` is null, unless
        # the condition has a part that Spark neither passes on nor leaves out as always true
        return Statement(Kind.CHANGE, delete, f"{delete} AND pmod(hash(id), 7) >= 0")

    def _merge(self) -> str:
        random, expressions = self.random, self._expressions
        numbers = self._some(self._ids, 4) if random.random() < 0.9 else []
        inserts = random.random() < 0.8 or not numbers
        if inserts:
            numbers = [*numbers, *self._added(random.randint(1, 3))]
        on = "t.id = s.id"
        if self.has_two_keys:
            on += " AND t.id2 = s.id2"
        if "p" in self.columns and random.random() < 0.5:
            on += " AND t.p = s.p"
        if not inserts and random.random() < 0.5:  # otherwise rows without a match may have keys that exist
            on += f" AND {expressions.comparison(random.choice(['s.', 't.']))}"
        clauses = [f"WHEN MATCHED{c} THEN {self._matched()}" for c in self._conditions(3, ("s.", "t."))]
        if inserts:
            clauses += [f"WHEN NOT MATCHED{c} THEN {self._not_matched()}" for c in self._conditions(2, ("s.",))]
        if random.random() < 0.2 or not clauses:
            name = random.choice(expressions.assignable)
            update = f"UPDATE SET t.{name} = {expressions.value(self.columns[name])}"
            condition = expressions.condition("t.")
            clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {condition} THEN {random.choice(['DELETE', update])}")
        source = self._selected([self._row(number) for number in numbers])
        return f"MERGE INTO {self.name} t USING ({source}) s ON {on} {' '.join(clauses)}"

    def _conditions(self, count: int, tables: Sequence[str]) -> list[str]:
        """Return the conditions of up to ``count`` clauses of a MERGE; only the last one may be without one."""
        some = [f" AND {self._expressions.condition(self.random.choice(tables))}" for _ in range(count)]
        some = some[: self.random.randint(0, count)]
        return [*some[:-1], some[-1] if self.random.random() < 0.4 else ""] if some else []

    def _matched(self) -> str:
        expressions = self._expressions
        names = self._some(expressions.assignable, 3)
        update = ", ".join(f"t.{name} = {expressions.assigned(name, merge=True)}" for name in names)
        return self.random.choice(["DELETE", "UPDATE SET *", f"UPDATE SET {update}"])

    def _not_matched(self) -> str:
        values = ", ".join(f"s.{name}" for name in self.columns)
        return self.random.choice(["INSERT *", f"INSERT ({', '.join(self.columns)}) VALUES ({values})"])

    def _alter(self) -> str:
        names = self._expressions.assignable
        name, chance, table = self.random.choice(names), self.random.random(), f"ALTER TABLE {self.name}"
        wider = _WIDER.get(self.columns[name])
        self._new_columns += 1
        new = f"n{self._new_columns}"
        if chance < 0.2 and wider is not None:
            self.columns[name] = wider
            return f"{table} ALTER COLUMN {name} TYPE {wider}"
        if chance < 0.4:
            self.columns = {new if old == name else old: kind for old, kind in self.columns.items()}
            return f"{table} RENAME COLUMN {name} TO {new}"
        if chance < 0.6 and len(names) > 2:
            del self.columns[name]
            return f"{table} DROP COLUMN {name}"
        last = {"p": self.columns.pop("p")} if "p" in self.columns else {}
        kind = self.random.choice(ATOMIC)
        self.columns |= {new: kind, **last}
        return f"{table} ADD COLUMNS ({new} {kind})"

    def _added(self, count: int) -> list[int]:
        """Return numbers of new records."""
        numbers = list(range(len(self._ids) + 1, len(self._ids) + 1 + count))
        self._ids += numbers
        return numbers

    def _some(self, values: Sequence[_Value], count: int) -> list[_Value]:
        return self.random.sample(values, min(len(values), self.random.randint(1, count)))

    def _partition(self, number: int) -> str:
        return LITERALS[self.columns["p"]](number)

    def _row(self, number: int) -> Mapping[str, str]:
        """Return the row of a record as literals by column."""
        keys = {"id": number, "id2": number % 4, "p": number % 3 + 1}
        return {
            name: LITERALS[kind](keys[name]) if name in keys else self._expressions.value(kind)
            for name, kind in self.columns.items()
        }

    def _selected(self, rows: Sequence[Mapping[str, str]]) -> str:
        selects = (", ".join(f"{value} AS {name}" for name, value in row.items()) for row in rows)
        return " UNION ALL ".join(f"SELECT {values}" for values in selects)
