"""Human-readable reports.

Takes a table, rows of Arrow batches, or the progress of a table service, and prints text, JSON, CSV or a progress bar.
"""

from __future__ import annotations

from pyhudi.report.progress_bar import progress_bar
from pyhudi.report.row_formats import write_csv, write_json_lines
from pyhudi.report.terminal_report import print_report

__all__ = ["print_report", "progress_bar", "write_csv", "write_json_lines"]
