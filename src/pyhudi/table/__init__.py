"""Tables: opening and creating them. Takes a path and options and gives the table's configuration, storage, timeline
and file-system view.
"""

from __future__ import annotations
