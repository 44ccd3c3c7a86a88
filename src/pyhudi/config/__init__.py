"""Options. Takes ``hoodie.*`` keys of Apache Hudi and ``pyhudi.*`` keys as texts, in any known spelling, and gives
typed, checked values; warns of unknown keys and refuses misspelt ones that decide what a table becomes."""

from __future__ import annotations

from pyhudi.config import options
from pyhudi.config.option import Option
from pyhudi.config.option_registry import OPTIONS, OptionFact
from pyhudi.config.parsed_options import Options

__all__ = ["OPTIONS", "Option", "OptionFact", "Options", "options"]
