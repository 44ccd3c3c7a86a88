"""Definition of an option: its key, type, default, other spellings, allowed values, and description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pyhudi.errors import InvalidOptionError

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

#: Every named option by key; filled as options are declared.
NAMED: dict[str, Option[Any]] = {}


@dataclass(frozen=True, slots=True, repr=False)
class Option(Generic[T]):
    """A typed option.

    ``default`` is what holds when the option is not set (``None``: nothing, or decided from other options, as ``doc``
    says). ``aliases`` are older or equivalent keys, strongest first. ``allowed`` says in words which values are good.
    ``convert`` turns the text into the value and raises ValueError for a bad one.
    """

    key: str
    type: str
    default: T
    convert: Callable[[str], T]
    allowed: str
    doc: str
    aliases: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Option({self.key})"

    def __reduce__(self) -> tuple[Callable[[str], Option[Any]], tuple[str]]:
        return (_named, (self.key,))

    def parse(self, text: str, key: str | None = None) -> T:
        """The value of *text*; ``InvalidOptionError`` names *key*, the spelling that the user took."""
        try:
            return self.convert(text)
        except ValueError:
            raise InvalidOptionError(key or self.key, text, self.allowed) from None


def _named(key: str) -> Option[Any]:
    return NAMED[key]


def _declare(option: Option[T]) -> Option[T]:
    if option.key in NAMED:
        raise ValueError(f"option {option.key} is declared twice")
    NAMED[option.key] = option
    return option


def text(key: str, default: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[str]:
    """An option that takes any text."""
    return _declare(Option(key, "text", default, str, "any text", doc, aliases))


def maybe_text(key: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[str | None]:
    """An option that takes any text and has no default."""
    option: Option[str | None] = Option(key, "text", None, str, "any text", doc, aliases)
    return _declare(option)


def names(key: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[tuple[str, ...]]:
    """A comma-separated list; blanks around entries and empty entries do not count."""
    return _declare(Option(key, "list", (), split_names, "a comma-separated list", doc, aliases))


def flag(key: str, default: bool, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[bool]:
    """True or false."""
    return _declare(Option(key, "boolean", default, _boolean, "true, false", doc, aliases))


def maybe_flag(key: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[bool | None]:
    """True, false, or decided elsewhere."""
    option: Option[bool | None] = Option(key, "boolean", None, _boolean, "true, false", doc, aliases)
    return _declare(option)


def integer(
    key: str, default: int, doc: str, *, least: int = 0, most: int | None = None, aliases: tuple[str, ...] = ()
) -> Option[int]:
    """A whole number from *least* to *most*."""
    allowed = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    return _declare(Option(key, "integer", default, _bounded(int, least, most), allowed, doc, aliases))


def maybe_integer(
    key: str, doc: str, *, least: int = 0, most: int | None = None, aliases: tuple[str, ...] = ()
) -> Option[int | None]:
    """A whole number from *least* to *most*, without a default."""
    allowed = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    option: Option[int | None] = Option(key, "integer", None, _bounded(int, least, most), allowed, doc, aliases)
    return _declare(option)


def number(
    key: str, default: float, doc: str, *, least: float = 0.0, most: float | None = None, aliases: tuple[str, ...] = ()
) -> Option[float]:
    """A number from *least* to *most*."""
    allowed = f"a number from {least:g}" + (f" to {most:g}" if most is not None else "")
    return _declare(Option(key, "number", default, _bounded(float, least, most), allowed, doc, aliases))


def choice(
    key: str,
    default: E,
    doc: str,
    *,
    any_case: bool = True,
    aliases: tuple[str, ...] = (),
    synonyms: Mapping[str, E] | None = None,
) -> Option[E]:
    """An option that takes a member of an enumeration; *any_case* as Apache Hudi takes the option (measured on 1.2.0),
    *synonyms* are older names of members."""
    return _declare(_choice(key, type(default), default, doc, any_case, aliases, synonyms))


def maybe_choice(
    key: str, kind: type[E], doc: str, *, any_case: bool = True, aliases: tuple[str, ...] = ()
) -> Option[E | None]:
    """An option that takes a member of an enumeration and has no default."""
    return _declare(_choice(key, kind, None, doc, any_case, aliases))


def int_choice(key: str, default: int, choices: tuple[int, ...], doc: str) -> Option[int]:
    """An option that takes one of a few whole numbers."""

    def convert(value: str) -> int:
        found = int(value)
        if found not in choices:
            raise ValueError(value)
        return found

    return _declare(Option(key, "integer", default, convert, ", ".join(map(str, choices)), doc))


def _choice(
    key: str,
    kind: type[E],
    default: Any,
    doc: str,
    any_case: bool,
    aliases: tuple[str, ...],
    synonyms: Mapping[str, E] | None = None,
) -> Option[Any]:
    exact = {member.value: member for member in kind}
    folded = {member.value.lower(): member for member in kind} if any_case else {}
    older = synonyms or {}

    def convert(value: str) -> E:
        found = exact.get(value) or folded.get(value.lower()) or older.get(value)
        if found is None:
            raise ValueError(value)
        return found

    allowed = ", ".join(exact) + ("" if any_case else " (in exactly this case)")
    return Option(key, "choice", default, convert, allowed, doc, aliases)


def split_names(value: str) -> tuple[str, ...]:
    """``"a, b"`` as ``("a", "b")``."""
    return tuple(part for part in (part.strip() for part in value.split(",")) if part)


def _boolean(value: str) -> bool:
    folded = value.lower()
    if folded not in ("true", "false"):
        raise ValueError(value)
    return folded == "true"


N = TypeVar("N", int, float)


def _bounded(kind: Callable[[str], N], least: N, most: N | None) -> Callable[[str], N]:
    def convert(value: str) -> N:
        if "_" in value or value != value.strip():  # Python takes these, Java does not
            raise ValueError(value)
        found = kind(value)
        if not found >= least or (most is not None and found > most):
            raise ValueError(value)
        return found

    return convert
