"""Random literals, conditions and assignments over the columns of a table, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

LITERALS: Mapping[str, Callable[[int], str]] = {
    "INT": str,
    "BIGINT": lambda n: f"{n}L",
    "STRING": lambda n: f"'{'kvabc'[n % 5]}{n}'",
    "DOUBLE": lambda n: f"{n}.5D",
    "FLOAT": lambda n: f"CAST({n}.25 AS FLOAT)",
    "DECIMAL(10,2)": lambda n: f"CAST({n}.75 AS DECIMAL(10,2))",
    "DATE": lambda n: f"DATE'2024-01-{n % 9 + 1:02d}'",
    "TIMESTAMP": lambda n: f"TIMESTAMP'2024-01-01 00:00:{n % 60:02d}'",
    "BOOLEAN": lambda n: "true" if n % 2 else "false",
    "STRUCT<a: INT, b: STRING>": lambda n: f"named_struct('a', {n}, 'b', 'x{n}')",
    "ARRAY<INT>": lambda n: f"array({n}, {n + 1})",
    "MAP<STRING, INT>": lambda n: f"map('m{n}', {n})",
}
"""A literal of a type, made of a number."""
ATOMIC = tuple(kind for kind in LITERALS if "<" not in kind)
STRUCT = next(kind for kind in LITERALS if kind.startswith("STRUCT"))
KEYS = ("id", "id2", "p")
"""Columns that say which record a row is. They are never assigned."""

_CHANGED = {
    "INT": "{} + 1",
    "BIGINT": "{} + 1",
    "DOUBLE": "{} * 2",
    "FLOAT": "CAST({} * 2 AS FLOAT)",
    "DECIMAL(10,2)": "CAST({} + 1 AS DECIMAL(10,2))",
    "STRING": "concat({}, 'x')",
}


@dataclass(frozen=True, slots=True)
class Expressions:
    """Random expressions over columns (names with types) of a table ``name``."""

    random: Random
    name: str
    columns: Mapping[str, str]

    @property
    def assignable(self) -> Sequence[str]:
        """The columns that are no keys."""
        return [name for name in self.columns if name not in KEYS]

    def value(self, kind: str) -> str:
        """Return a literal, which may be null."""
        if self.random.random() < 0.12:
            return f"CAST(NULL AS {kind})"
        return LITERALS[kind](self.random.randint(-3, 9))

    def comparison(self, table: str = "") -> str:
        """Return a condition on one column; ``table`` is an alias with a dot."""
        random = self.random
        column = random.choice([name for name, kind in self.columns.items() if kind in ATOMIC or kind == STRUCT])
        kind, name = self.columns[column], table + column
        if kind == STRUCT:
            kind, name = "INT", f"{name}.a"
        if kind == "BOOLEAN":
            return random.choice([name, f"NOT {name}", f"{name} IS NULL"])
        low = 0 if column in KEYS else -3

        def value() -> str:
            return LITERALS[kind](random.randint(low, 12))

        forms = [
            *(f"{name} {sign} {value()}" for sign in ("=", "<>", "<=>", "<", "<=", ">", ">=")),
            *(f"{name} {negation}IN ({value()}, {value()}, {value()})" for negation in ("", "NOT ")),
            *(f"{name} IS {negation}NULL" for negation in ("", "NOT ")),
            f"{name} BETWEEN {value()} AND {value()}",
            f"NOT ({name} = {value()})",
        ]
        if kind == "STRING":
            forms += [f"{name} {negation}LIKE '%{random.choice('abkv1234')}%'" for negation in ("", "NOT ")]
        if kind in ("INT", "BIGINT"):
            forms += [f"{name} % 2 = {random.randint(0, 1)}"]
        return random.choice(forms)

    def condition(self, table: str = "", *, subqueries: bool = False) -> str:
        """Return one or two comparisons, or one with a subquery of the same table."""
        random, name = self.random, self.name
        chance = random.random()
        if subqueries and chance < 0.2:
            ids = f"SELECT id FROM {name} WHERE {self.comparison()}"
            return random.choice(
                [
                    f"{table}id IN ({ids})",
                    f"{table}id NOT IN ({ids})",
                    f"{table}id = (SELECT max(id) FROM {name})",
                    f"EXISTS (SELECT 1 FROM {name} z WHERE z.id = {table or f'{name}.'}id AND {self.comparison('z.')})",
                ]
            )
        if chance < 0.6:
            return self.comparison(table)
        return f"({self.comparison(table)} {random.choice(['AND', 'OR'])} {self.comparison(table)})"

    def assigned(self, column: str, *, merge: bool = False) -> str:
        """Return a new value of a column; ``merge``: in a MERGE of a source ``s`` into ``t``."""
        kind, chance, own = self.columns[column], self.random.random(), f"t.{column}" if merge else column
        if merge and chance < 0.4:
            return f"s.{column}"
        if chance < 0.65 or kind not in _CHANGED:
            return self.value(kind)
        if merge and chance < 0.75:
            return f"coalesce(s.{column}, {own})"
        if chance < 0.8:
            return f"CASE WHEN {self.comparison('t.' if merge else '')} THEN {self.value(kind)} ELSE {own} END"
        return _CHANGED[kind].format(own)
