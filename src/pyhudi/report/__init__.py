"""Human-readable reports.

Takes a table, its columns, rows of Arrow batches, or the progress of a table service, and prints text, JSON, CSV or a
progress bar.
"""

from __future__ import annotations

from pyhudi.report.column_rows import column_rows
from pyhudi.report.progress_bar import progress_bar
from pyhudi.report.row_formats import write_csv, write_json_lines
from pyhudi.report.terminal_report import print_report

__all__ = ["column_rows", "print_report", "progress_bar", "write_csv", "write_json_lines"]
