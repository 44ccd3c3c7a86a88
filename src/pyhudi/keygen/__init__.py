"""Record keys and partition paths.

Takes table properties and options and returns an engine-independent specification. Decodes partition paths to values.
"""

from __future__ import annotations
