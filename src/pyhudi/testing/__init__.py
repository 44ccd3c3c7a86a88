"""What users test their own parts with: mergers so far. Needs nothing but pytest, if that."""

from __future__ import annotations

from pyhudi.testing.mergers import MergerTests, check_merger

__all__ = ["MergerTests", "check_merger"]
