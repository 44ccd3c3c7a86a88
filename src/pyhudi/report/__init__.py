"""Human-readable reports.

Takes a table, or the progress of a table service, and prints text or a progress bar to a terminal.
"""

from __future__ import annotations

from pyhudi.report.progress_bar import progress_bar
from pyhudi.report.terminal_report import print_report

__all__ = ["print_report", "progress_bar"]
