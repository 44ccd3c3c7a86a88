"""Queries without an engine. Takes a table, query options, columns and a row filter, and gives a scan plan: the file
slices to read, with what was pruned and why. Readers in this process and on Spark run the same plan.
"""

from __future__ import annotations
