"""All keys of Apache Hudi's releases, their aliases, and suggestions for misspelt keys.

The facts are in the package file ``options.tsv``: key, default, default on Spark, first and last release, and
deprecated aliases; ``-`` means no default. They cover 0.15.0 to 1.2.0. Only the options declared in
:mod:`pyhudi.config.options` have an effect in pyhudi. The others are merely known to be valid keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

from pyhudi.config import options as _options  # declares the options
from pyhudi.config.option import NAMED


@dataclass(frozen=True, slots=True)
class RegisteredOption:
    """Facts about one key."""

    key: str
    default: str | None
    spark_default: str | None
    since: str
    aliases: tuple[str, ...]


def _load() -> dict[str, RegisteredOption]:
    text = (resources.files("pyhudi.config") / "options.tsv").read_text(encoding="utf-8")
    facts: dict[str, RegisteredOption] = {}
    for line in text.splitlines()[1:]:
        key, default, spark, since, _, aliases = line.split("\t")
        default_text = None if default == "-" else default
        facts[key] = RegisteredOption(
            key, default_text, spark or default_text, since, tuple(a for a in aliases.split(",") if a)
        )
    return facts


def _aliases() -> dict[str, str]:
    aliases: dict[str, str] = {}
    for option in NAMED.values():
        for alias in option.aliases:
            if aliases.setdefault(alias, option.key) != option.key:
                raise ValueError(f"{alias} is an alias of {aliases[alias]} and of {option.key}")
    for fact in OPTIONS.values():
        for alias in fact.aliases:
            aliases.setdefault(alias, aliases.get(fact.key, fact.key))
    return aliases


OPTIONS: Mapping[str, RegisteredOption] = MappingProxyType(_load())
ALIASES: Mapping[str, str] = MappingProxyType(_aliases())
"""Alias → canonical key of the option."""

_PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.", "pyhudi.")
_OPEN = (
    "hoodie.aws.",
    "hoodie.client.",
    "hoodie.datasource.meta.sync.",
    "hoodie.deltastreamer.",
    "hoodie.gcp.",
    "hoodie.kafka.",
    "hoodie.meta.sync.",
    "hoodie.metaserver.",
    "hoodie.record.merge.property.",
    "hoodie.streamer.",
    "hoodie.write.commit.callback.pulsar.",
    "hoodie.write.lock.storage.",
    "pyhudi.storage.",
)
"""Prefixes of keys that are not enumerated: their remainder is defined by some component."""
_ENUMERATED = ("hoodie.deltastreamer.keygen.", "hoodie.streamer.keygen.")
"""Prefixes within `_OPEN` whose keys are enumerated."""

_DECLARED = {key.lower(): key for key in (*OPTIONS, *ALIASES, *NAMED)}

del _options


def declared(key: str) -> str:
    """Return a known key or alias in the case in which it is declared; other keys are unchanged.

    The case of *key* does not count, as Spark's readers and writers ignore it.
    """
    return _DECLARED.get(key.lower(), key)


def is_declared(key: str) -> bool:
    """Return True if the key, in any case, is a known key or alias."""
    return key.lower() in _DECLARED


def canonical(key: str) -> str:
    """Return the canonical key of the option with the key or alias *key*, in any case."""
    name = declared(key)
    return ALIASES.get(name, name)


def spellings(key: str) -> tuple[str, ...]:
    """Return the key and its aliases in order of precedence."""
    option = NAMED.get(key)
    strong = option.aliases if option is not None else ()
    rest = (alias for alias, target in ALIASES.items() if target == key and alias not in strong)
    return (key, *strong, *rest)


def is_known(key: str) -> bool:
    """Return True if the key, in any case, is known or has one of the prefixes whose keys are not enumerated."""
    folded = key.lower()
    if not folded.startswith(_PREFIXES) or folded in _DECLARED:
        return True
    return folded.startswith(_OPEN) and not folded.startswith(_ENUMERATED)


_NAME_PARTS = 3
"""Last parts of a key that name an option, whatever its prefix."""


def suggest(key: str) -> str | None:
    """Return the known key that is most similar to *key*, if any is similar enough."""
    if key.lower() in _DECLARED:
        return declared(key)
    tail = "." + ".".join(key.lower().split(".")[-_NAME_PARTS:])
    same_name = sorted((declared_key for declared_key in _DECLARED if declared_key.endswith(tail)), key=len)
    if same_name:
        return _DECLARED[same_name[0]]
    close = difflib.get_close_matches(key.lower(), _DECLARED, n=1, cutoff=0.8)
    if not close:  # For a correct name with a wrong prefix, compare the part after the last but one dot.
        tails = {".".join(declared_key.split(".")[-2:]): declared_key for declared_key in sorted(_DECLARED.values())}
        close = [tails[t] for t in difflib.get_close_matches(".".join(key.split(".")[-2:]), tails, n=1, cutoff=0.85)]
        return close[0] if close else None
    return _DECLARED[close[0]]
