"""Definition of an option: key, type, default, aliases, allowed values and description."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pyhudi.errors import InvalidOptionError

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

# All declared options by key.
NAMED: dict[str, Option[Any]] = {}


@dataclass(frozen=True, slots=True, repr=False)
class Option(Generic[T]):
    """A typed option.

    ``default`` applies if the option is not set. ``None`` means no default, or one derived from other options as
    ``doc`` describes. ``aliases`` are older or equivalent keys in order of precedence. ``allowed`` describes the valid
    values. ``convert`` parses the text and raises ValueError for an invalid one.
    """

    key: str
    type: str
    default: T
    convert: Callable[[str], T]
    allowed: str
    doc: str
    aliases: tuple[str, ...] = ()

    @property
    def default_text(self) -> str:
        """The default as users write it; empty if there is none."""
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default))
        return "" if self.default is None else option_text(self.default)

    def __repr__(self) -> str:
        return f"Option({self.key})"

    def __reduce__(self) -> tuple[Callable[[str], Option[Any]], tuple[str]]:
        return (_option_by_key, (self.key,))

    def parse(self, text: str, key: str | None = None) -> T:
        """Return the value of *text*. ``InvalidOptionError`` names *key*, the spelling that the user passed."""
        try:
            return self.convert(text)
        except ValueError:
            raise InvalidOptionError(key or self.key, text, self.allowed) from None


def _option_by_key(key: str) -> Option[Any]:
    return NAMED[key]


def _declare(option: Option[T]) -> Option[T]:
    if option.key in NAMED:
        raise ValueError(f"option {option.key} is declared twice")
    NAMED[option.key] = option
    return option


def option_text(value: Any) -> str:
    """Return the value of an option as the text that users write, and that Spark's readers and writers pass on."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def text(key: str, default: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[str]:
    """Declare an option that accepts any text."""
    return _declare(Option(key, "text", default, str, "any text", doc, aliases))


def optional_text(key: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[str | None]:
    """Declare an option that accepts any text and has no default."""
    option: Option[str | None] = Option(key, "text", None, str, "any text", doc, aliases)
    return _declare(option)


def name_list(key: str, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[tuple[str, ...]]:
    """Declare a comma-separated list. Blanks around entries and empty entries are ignored."""
    return _declare(Option(key, "list", (), split_names, "a comma-separated list", doc, aliases))


def flag(key: str, default: bool, doc: str, *, aliases: tuple[str, ...] = ()) -> Option[bool]:
    """Declare a boolean option."""
    return _declare(Option(key, "boolean", default, _boolean, "true, false", doc, aliases))


def optional_flag(key: str, doc: str) -> Option[bool | None]:
    """Declare a boolean option without a default, or with one derived from other options."""
    option: Option[bool | None] = Option(key, "boolean", None, _boolean, "true, false", doc)
    return _declare(option)


def integer(
    key: str,
    default: int,
    doc: str,
    *,
    minimum: int = 0,
    maximum: int | None = None,
    never: int | None = None,
    aliases: tuple[str, ...] = (),
) -> Option[int]:
    """Declare an integer option with values from *minimum* to *maximum*, and *never* to turn something off."""
    within = _bounded(int, minimum, maximum)
    allowed = _allowed_integers(minimum, maximum)
    if never is None:
        return _declare(Option(key, "integer", default, within, allowed, doc, aliases))

    def convert(value: str) -> int:
        return never if value == str(never) else within(value)

    return _declare(Option(key, "integer", default, convert, f"{never}, or {allowed}", doc, aliases))


def optional_integer(key: str, doc: str, *, minimum: int = 0, maximum: int | None = None) -> Option[int | None]:
    """Declare an integer option with values from *minimum* to *maximum* and no default."""
    within, allowed = _bounded(int, minimum, maximum), _allowed_integers(minimum, maximum)
    option: Option[int | None] = Option(key, "integer", None, within, allowed, doc)
    return _declare(option)


def _allowed_integers(minimum: int, maximum: int | None) -> str:
    return f"an integer of at least {minimum}" if maximum is None else f"an integer from {minimum} to {maximum}"


def number(key: str, default: float, doc: str, *, maximum: float | None = None) -> Option[float]:
    """Declare a floating-point option with values from 0 to *maximum*."""
    allowed = "a number from 0" + (f" to {maximum:g}" if maximum is not None else "")
    return _declare(Option(key, "number", default, _bounded(float, 0.0, maximum), allowed, doc))


def choice(
    key: str,
    default: E,
    doc: str,
    *,
    any_case: bool = True,
    aliases: tuple[str, ...] = (),
    synonyms: Mapping[str, E] | None = None,
    refused: tuple[E, ...] = (),
) -> Option[E]:
    """Declare an option whose value is a member of an enumeration.

    Args:
        key: Key of the option.
        default: Default member.
        doc: Description.
        any_case: Ignore case, as Apache Hudi does for this option (measured on 1.2.0).
        aliases: Older or equivalent keys.
        synonyms: Other names of members, in any case if ``any_case``.
        refused: Members of Apache Hudi that are refused, with the reason, where the option is used.
    """
    convert, allowed = _members(type(default), synonyms or {}, any_case=any_case, refused=refused)
    return _declare(Option(key, "choice", default, convert, allowed, doc, aliases))


def optional_choice(key: str, kind: type[E], doc: str, *, aliases: tuple[str, ...] = ()) -> Option[E | None]:
    """Declare an option whose value is a member of an enumeration, in any case, and that has no default."""
    convert, allowed = _members(kind, {}, any_case=True)
    option: Option[E | None] = Option(key, "choice", None, convert, allowed, doc, aliases)
    return _declare(option)


def int_choice(key: str, default: int, choices: tuple[int, ...], doc: str) -> Option[int]:
    """Declare an option with a fixed set of integer values."""

    def convert(value: str) -> int:
        number = int(value)
        if number not in choices:
            raise ValueError(value)
        return number

    return _declare(Option(key, "integer", default, convert, ", ".join(map(str, choices)), doc))


def _members(
    kind: type[E], synonyms: Mapping[str, E], *, any_case: bool, refused: tuple[E, ...] = ()
) -> tuple[Callable[[str], E], str]:
    """Return the parser of the members of an enumeration, and the description of the texts that it accepts."""
    exact = {member.value: member for member in kind}
    spellings = {**exact, **synonyms}
    folded = {text.lower(): member for text, member in spellings.items()} if any_case else {}

    def convert(value: str) -> E:
        member = spellings.get(value) or folded.get(value.lower())
        if member is None:
            raise ValueError(value)
        return member

    allowed = ", ".join(member for member in kind if member not in refused)
    not_here = f"; refused: {', '.join(refused)}" if refused else ""
    return convert, allowed + ("" if any_case else " (in exactly this case)") + not_here


def split_names(value: str) -> tuple[str, ...]:
    """Split a comma-separated list: ``"a, b"`` becomes ``("a", "b")``."""
    return tuple(part for part in (part.strip() for part in value.split(",")) if part)


def _boolean(value: str) -> bool:
    folded = value.lower()
    if folded not in ("true", "false"):
        raise ValueError(value)
    return folded == "true"


N = TypeVar("N", int, float)


def _bounded(kind: Callable[[str], N], minimum: N, maximum: N | None) -> Callable[[str], N]:
    def convert(value: str) -> N:
        if "_" in value or value != value.strip():  # Python accepts these, Java does not
            raise ValueError(value)
        number = kind(value)
        if not number >= minimum or (maximum is not None and number > maximum):
            raise ValueError(value)
        return number

    return convert


def compile_regex(option: Option[Any], text: str) -> re.Pattern[str]:
    """Return the regular expression in the value of an option.

    Args:
        option: The option.
        text: Its value.

    Raises:
        InvalidOptionError: The value is not a regular expression.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidOptionError(option.key, text, f"a regular expression ({error})") from error
