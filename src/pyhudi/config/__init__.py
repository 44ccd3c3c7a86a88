"""Options: every ``hoodie.*`` key of Apache Hudi and our own ``pyhudi.*`` ones, typed, checked, spelled one way."""

from __future__ import annotations

from pyhudi.config import options
from pyhudi.config.option import Option
from pyhudi.config.parsed import Options
from pyhudi.config.registry import OPTIONS, OptionFact

__all__ = ["OPTIONS", "Option", "OptionFact", "Options", "options"]
