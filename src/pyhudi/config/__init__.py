"""Options of pyhudi and Apache Hudi.

Takes ``hoodie.*`` and ``pyhudi.*`` keys as text, in any known spelling, and returns typed, validated values. Unknown
keys raise a warning. Misspelt keys that would change the created table raise an error.
"""

from __future__ import annotations

from pyhudi.config import options
from pyhudi.config.option import Option
from pyhudi.config.option_registry import OPTIONS, RegisteredOption
from pyhudi.config.options_map import Options

__all__ = ["OPTIONS", "Option", "Options", "RegisteredOption", "options"]
