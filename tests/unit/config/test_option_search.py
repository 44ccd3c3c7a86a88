"""Search in the options."""

from __future__ import annotations

import pytest

from pyhudi.config.option_search import find_options, option_facts
from pyhudi.errors import ConfigError


def test_all_words_are_found_in_any_case() -> None:
    keys = [option.key for option in find_options(["CLEAN", "commits", "retained"])]
    assert "hoodie.clean.commits.retained" in keys
    assert keys == sorted(keys)
    assert not find_options(["clean", "nowhere"])


def test_options_without_effect_are_found_on_request() -> None:
    words = ["hive_sync.jdbcurl"]
    assert not find_options(words)
    assert {option.type for option in find_options(words, with_unused=True)} == {""}


def test_facts_by_an_alias() -> None:
    facts = option_facts("hoodie.Cleaner.policy")
    assert facts.key == "hoodie.clean.policy"
    assert facts.default == "KEEP_LATEST_COMMITS"
    assert "hoodie.cleaner.policy" in facts.aliases
    assert facts.as_texts()["allowed"] == facts.allowed


def test_unknown_options() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'hoodie\.clean\.policy'"):
        option_facts("hoodie.clean.polizy")
