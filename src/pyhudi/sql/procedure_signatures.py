"""Apache Hudi's procedures: their parameters and the columns of their results."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pyhudi.errors import QueryError
from pyhudi.sql.statements import Call

_TYPES = {"string": "string", "integer": "int", "long": "bigint", "double": "double", "boolean": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; ``default`` is a text, None without one."""

    name: str
    kind: str
    required: bool
    default: str | None


@dataclass(frozen=True, slots=True)
class Signature:
    """A procedure, as in Apache Hudi 1.2. ``columns``: names and Spark types of the result."""

    name: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, str], ...]

    @property
    def schema(self) -> str:
        """Columns of the result as SQL."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self.columns)

    def bind(self, call: Call) -> dict[str, object]:
        """Return the arguments of a call by name, with defaults.

        Raises:
            QueryError: There are too many arguments, or one is unknown, missing, passed twice, or of another type.
        """
        names = [parameter.name.lower() for parameter in self.parameters]
        if len(call.positional) > len(names):
            raise QueryError(
                f"{self.name} takes {len(names)} arguments ({', '.join(names)}), not {len(call.positional)}"
            )
        arguments: dict[str, object] = dict(zip(names, call.positional, strict=False))
        for name, value in call.named.items():
            if name not in names:
                raise QueryError(
                    f"{self.name} has no parameter {name!r}{_hint(name, names)}; it has {', '.join(names)}"
                )
            if name in arguments:
                raise QueryError(f"the argument {name!r} of {self.name} is passed twice")
            arguments[name] = value
        bound: dict[str, object] = {}
        for parameter in self.parameters:
            value = arguments.get(parameter.name.lower())
            if value is None and parameter.required:
                raise QueryError(f"{self.name} requires the argument {parameter.name!r}")
            bound[parameter.name] = self._typed(parameter, parameter.default if value is None else value)
        return bound

    def _typed(self, parameter: Parameter, value: object) -> object:
        if value is None:
            return None
        try:
            match parameter.kind:
                case "integer" | "long":
                    return int(str(value))
                case "boolean":
                    return {"true": True, "false": False}[str(value).lower()]
                case _:
                    return str(value)
        except (ValueError, KeyError):
            raise QueryError(
                f"the argument {parameter.name!r} of {self.name} must be of type {parameter.kind}, not {value!r}"
            ) from None


def _hint(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


@cache
def signatures() -> Mapping[str, Signature]:
    """Return all procedures by name."""
    text = files("pyhudi.sql").joinpath("procedures.tsv").read_text("utf-8")
    by_name = {}
    for line in text.splitlines()[1:]:
        name, parameters, columns = line.split("\t")
        by_name[name] = Signature(
            name,
            tuple(_parameter(part) for part in parameters.split(", ") if part),
            tuple((head, _TYPES[kind]) for head, kind in (column.rsplit(" ", 1) for column in columns.split(", "))),
        )
    return by_name


_OF_OTHER_FORMATS = {
    "expire_snapshots": "run_clean",
    "vacuum": "run_clean",
    "remove_orphan_files": "HudiTable.for_name(…).services.delete_orphan_files",
    "rewrite_data_files": "run_clustering, or run_compaction for log files",
    "optimize": "run_clustering, or run_compaction for log files",
    "rollback_to_snapshot": "rollback_to_savepoint or rollback_to_instant",
    "rollback_to_timestamp": "rollback_to_savepoint or rollback_to_instant",
    "set_current_snapshot": "rollback_to_savepoint or rollback_to_instant",
    "restore": "rollback_to_savepoint or rollback_to_instant",
    "create_tag": "create_savepoint",
    "migrate": "run_bootstrap",
    "snapshot": "run_bootstrap",
    "add_files": "run_bootstrap, or INSERT INTO … SELECT * FROM parquet.`path`",
    "history": "show_commits",
}
"""Procedures of Iceberg and Delta Lake, and what to call instead."""


def _parameter(text: str) -> Parameter:
    name, kind = text.split(" ", 1)
    if kind.endswith("*"):
        return Parameter(name, kind[:-1], required=True, default=None)
    kind, _, default = kind.partition("=")
    return Parameter(name, kind, required=False, default=None if default == "null" else default)


def signature_of(name: str) -> Signature:
    """Return a procedure.

    Raises:
        QueryError: The procedure does not exist.
    """
    signature = signatures().get(name.lower())
    if signature is None:
        meant = _OF_OTHER_FORMATS.get(name.lower())
        hint = f"; use {meant}" if meant else _hint(name.lower(), list(signatures()))
        raise QueryError(f"unknown procedure {name!r}{hint}; CALL help() lists all")
    return signature
