"""Work that follows the publication of a write. Takes a committed instant with its metadata and gives services of the
metadata table and a report for logs, callbacks and metrics. Failures are logged; the write stays."""

from __future__ import annotations
