"""Work after the publication of a write.

Takes a committed instant with its metadata, runs services of the metadata table and reports to logs, callbacks and
metrics. Failures are logged; the write stays committed.
"""

from __future__ import annotations
