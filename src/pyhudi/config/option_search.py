"""Search in the options of pyhudi and Apache Hudi."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.config.option import NAMED
from pyhudi.config.option_registry import OPTIONS, canonical, is_declared, spellings, suggest
from pyhudi.errors import ConfigError

_UNUSED = "known, as an option of Apache Hudi, but without effect in pyhudi"


@dataclass(frozen=True, slots=True)
class OptionFacts:
    """Facts about an option, as texts.

    Attributes:
        key: Its key.
        type: Type of its values; empty if pyhudi does not use it.
        default: Default, empty if there is none.
        allowed: Values that are allowed.
        meaning: What it does.
        aliases: Older and equivalent keys.
    """

    key: str
    type: str
    default: str
    allowed: str
    meaning: str
    aliases: tuple[str, ...]

    def as_texts(self) -> dict[str, str]:
        """Return the facts by name."""
        return {
            "key": self.key,
            "type": self.type,
            "default": self.default,
            "allowed": self.allowed,
            "meaning": self.meaning,
            "aliases": ", ".join(self.aliases),
        }


def find_options(words: Iterable[str], *, with_unused: bool = False) -> list[OptionFacts]:
    """Return the options whose key, aliases or meaning contain all words, in any case, sorted by key.

    Args:
        words: The words.
        with_unused: Also return options of Apache Hudi that pyhudi only knows.
    """
    folded = [word.lower() for word in words]
    keys = sorted({*NAMED, *OPTIONS} if with_unused else NAMED)
    facts = [option_facts(key) for key in keys if canonical(key) == key]
    return [one for one in facts if all(word in _searched(one) for word in folded)]


def option_facts(key: str) -> OptionFacts:
    """Return the facts about an option.

    Args:
        key: Its key or an alias, in any case.

    Raises:
        ConfigError: There is no such option.
    """
    if not is_declared(key):
        similar = suggest(key)
        hint = f"; did you mean {similar!r}?" if similar else ""
        raise ConfigError(f"there is no option {key!r}{hint}")
    name = canonical(key)
    option = NAMED.get(name)
    aliases = spellings(name)[1:]
    if option is None:
        return OptionFacts(name, "", (OPTIONS[name].default or "") if name in OPTIONS else "", "", _UNUSED, aliases)
    return OptionFacts(name, option.type, option.default_text, option.allowed, option.doc, aliases)


def _searched(facts: OptionFacts) -> str:
    return " ".join((facts.key, *facts.aliases, facts.meaning)).lower()
