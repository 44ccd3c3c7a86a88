"""Test kits for user-defined components, currently mergers. They run a component on random data and require at most
pytest."""

from __future__ import annotations

from pyhudi.testing.mergers import MergerTests, check_merger

__all__ = ["MergerTests", "check_merger"]
