"""Configuration of all tests: no deadline for the examples of property tests, because their duration depends on the
machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.properties import examples

settings.register_profile(
    "pyhudi", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pyhudi")
