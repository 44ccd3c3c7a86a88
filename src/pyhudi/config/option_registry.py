"""Every key that Apache Hudi's releases know, the spellings that mean the same, and "did you mean".

The facts (key, default, default that holds on Spark, first and last release, deprecated spellings) are the package
file ``options.tsv``; ``-`` is no default. They cover 0.15.0 to 1.2.0. Only the options named in
:mod:`pyhudi.config.options` have a meaning here; of the others it is known that they are no typing errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

from pyhudi.config import options as _options  # declares the named options
from pyhudi.config.option import NAMED


@dataclass(frozen=True, slots=True)
class OptionFact:
    """Facts about one key, by release."""

    key: str
    default: str | None
    spark_default: str | None
    since: str
    last_release: str
    aliases: tuple[str, ...]


def _load() -> dict[str, OptionFact]:
    text = (resources.files("pyhudi.config") / "options.tsv").read_text(encoding="utf-8")
    facts: dict[str, OptionFact] = {}
    for line in text.splitlines()[1:]:
        key, default, spark, since, last, aliases = line.split("\t")
        known = None if default == "-" else default
        facts[key] = OptionFact(key, known, spark or known, since, last, tuple(a for a in aliases.split(",") if a))
    return facts


def _aliases() -> dict[str, str]:
    found: dict[str, str] = {}
    for option in NAMED.values():
        for alias in option.aliases:
            if found.setdefault(alias, option.key) != option.key:
                raise ValueError(f"{alias} is an alias of {found[alias]} and of {option.key}")
    for fact in OPTIONS.values():
        for alias in fact.aliases:
            found.setdefault(alias, found.get(fact.key, fact.key))
    return found


OPTIONS: Mapping[str, OptionFact] = MappingProxyType(_load())
ALIASES: Mapping[str, str] = MappingProxyType(_aliases())
"""Older or equivalent spelling → the key that stands for the option."""

_PREFIXES = ("hoodie.", "_hoodie.", "_.hoodie.", "pyhudi.")
# families of keys that are open: whatever follows is some component's own
_OPEN = (
    "hoodie.aws.",
    "hoodie.client.",
    "hoodie.datasource.hive_sync.",
    "hoodie.datasource.meta_sync.",
    "hoodie.datasource.meta.sync.",
    "hoodie.deltastreamer.",
    "hoodie.gcp.",
    "hoodie.kafka.",
    "hoodie.meta.sync.",
    "hoodie.metaserver.",
    "hoodie.metrics.",
    "hoodie.record.merge.property.",
    "hoodie.streamer.",
    "hoodie.write.commit.callback.",
    "hoodie.write.lock.dynamodb.",
    "hoodie.write.lock.hivemetastore.",
    "hoodie.write.lock.storage.",
    "hoodie.write.lock.zookeeper.",
    "pyhudi.storage.",
)

__all__ = ["ALIASES", "NAMED", "OPTIONS", "OptionFact", "canonical", "is_known", "spellings", "suggest"]

del _options


def canonical(key: str) -> str:
    """The key that stands for the option which *key* spells."""
    return ALIASES.get(key, key)


def spellings(key: str) -> tuple[str, ...]:
    """The key itself and its other spellings, strongest first."""
    option = NAMED.get(key)
    strong = option.aliases if option is not None else ()
    rest = (alias for alias, target in ALIASES.items() if target == key and alias not in strong)
    return (key, *strong, *rest)


def is_known(key: str) -> bool:
    """Return True if the key is known, or is not one that this registry could know."""
    return not key.startswith(_PREFIXES) or key in NAMED or key in ALIASES or key in OPTIONS or key.startswith(_OPEN)


def suggest(key: str) -> str | None:
    """The known key that looks most like *key*, if any does."""
    pool = {*NAMED, *ALIASES, *OPTIONS}
    folded = {known.lower(): known for known in pool}
    exact = folded.get(key.lower())
    if exact is not None:
        return exact
    close = difflib.get_close_matches(key.lower(), folded, n=1, cutoff=0.8)
    if not close:  # the right words in a wrong family: compare what comes after the last but one dot
        tails = {".".join(known.split(".")[-2:]): known for known in sorted(pool)}
        close = [tails[t] for t in difflib.get_close_matches(".".join(key.split(".")[-2:]), tails, n=1, cutoff=0.85)]
        return close[0] if close else None
    return folded[close[0]]
