"""Types of the clauses that several statements have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Name: TypeAlias = tuple[str, ...]
"""Parts of the name of a table or column."""
PartitionSpec: TypeAlias = Mapping[str, str | None]
"""Partition columns with the SQL of their values; None: the value comes from the rows, or any."""
