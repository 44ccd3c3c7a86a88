"""Options of one call: validated, normalized, immutable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from pyhudi.config.option import NAMED, Option
from pyhudi.config.option_registry import canonical, declared, is_known, spellings, suggest
from pyhudi.errors import ConfigError, UnknownOptionWarning, warn

T = TypeVar("T")


class Options(Mapping[str, str]):
    """Options as text by key. Keys are canonical; lookups accept every alias.

    Create an instance with :meth:`parse`. Keys that belong neither to Apache Hudi nor to pyhudi, such as commit
    metadata and storage settings, are kept unchanged. Instances can be pickled and are immutable: :meth:`merged`
    returns a new one.
    """

    __slots__ = ("_spelled", "_values")

    _values: dict[str, str]
    _spelled: dict[str, str]

    def __init__(self, values: Mapping[str, str], spelled: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._spelled = dict(spelled)

    @classmethod
    def parse(cls, raw: Mapping[str, object] | None = None) -> Options:
        """Validate *raw* and replace aliases by canonical keys.

        Values may be text, booleans or numbers; ``None`` means not set. The case of known keys does not count. If
        several spellings of an option are set, the canonical one takes precedence, then the newer alias; of spellings
        that differ in case only, the last one. A value that is not allowed raises InvalidOptionError. An unknown
        ``hoodie.*`` or ``pyhudi.*`` key raises UnknownOptionWarning and has no effect.
        """
        if isinstance(raw, Options):
            return raw
        values: dict[str, str] = {}
        spelled: dict[str, str] = {}
        for key, value in (raw or {}).items():
            if not isinstance(key, str):
                raise ConfigError(f"option keys must be text, got {key!r}")
            if value is None:
                continue
            if not is_known(key):
                _warn_unknown(key)
            name = canonical(key)
            if name in values and not _stronger(name, key, spelled[name]):
                continue
            values[name] = _as_text(value)
            spelled[name] = key
        for name, value in values.items():
            option = NAMED.get(name)
            if option is not None:
                option.parse(value, spelled[name])
        return cls(values, spelled)

    def get_typed(self, option: Option[T]) -> T:
        """Return the value of the option, or its default if it is not set."""
        value = self._values.get(option.key)
        return option.default if value is None else option.parse(value, self.spelling(option))

    def is_set(self, option: Option[T]) -> bool:
        """Return True if the option is set, under any of its keys."""
        return option.key in self._values

    def text(self, option: Option[T]) -> str | None:
        """Return the text of the option exactly as passed, or ``None``."""
        return self._values.get(option.key)

    def spelling(self, option: Option[T]) -> str:
        """Return the key that the user passed for the option, for use in messages."""
        return self._spelled.get(option.key, option.key)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the options whose keys start with *prefix*, under their full keys."""
        return {key: value for key, value in self._values.items() if key.startswith(prefix)}

    def merged(self, more: Mapping[str, object]) -> Options:
        """Return these options, overridden by *more*."""
        added = Options.parse(more)
        return Options({**self._values, **added._values}, {**self._spelled, **added._spelled})

    def __getitem__(self, key: str) -> str:
        return self._values[canonical(key)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Options) else NotImplemented

    def __reduce__(self) -> tuple[type[Options], tuple[dict[str, str], dict[str, str]]]:
        return (Options, (self._values, self._spelled))

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(self._values))})"  # Keys only: values may be credentials.


def _stronger(name: str, key: str, than: str) -> bool:
    order = spellings(name)
    return order.index(declared(key)) <= order.index(declared(than))


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_as_text(part) for part in value)
    return str(value)


def _warn_unknown(key: str) -> None:
    hint = suggest(key)
    tail = f"; did you mean {hint!r}?" if hint else ""
    warn(f"unknown option {key!r} has no effect{tail}", UnknownOptionWarning)
