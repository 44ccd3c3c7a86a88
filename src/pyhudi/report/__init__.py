"""Reports of a table for people."""

from __future__ import annotations

from pyhudi.report.terminal import print_report

__all__ = ["print_report"]
