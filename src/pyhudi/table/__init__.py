"""Tables: opening and creating them.

Takes a path and options and returns the table's configuration, storage, timeline and file-system view.
"""

from __future__ import annotations
