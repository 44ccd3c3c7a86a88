"""Queries, independent of an engine.

Takes a table, query options, columns and a row filter, and returns a scan plan: the file slices to read, with a report
of pruning. Readers in this process and on Spark execute the same plan.
"""

from __future__ import annotations
