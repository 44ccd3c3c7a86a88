"""Test kits for components that users write: mergers so far. Take a component and run it on random data; they need
nothing but pytest, if that."""

from __future__ import annotations

from pyhudi.testing.mergers import MergerTests, check_merger

__all__ = ["MergerTests", "check_merger"]
