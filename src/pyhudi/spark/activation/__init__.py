"""Wrapped methods of PySpark's readers and writers. Takes their calls with what was set before, and gives pyhudi's
answer where the format or the table is Hudi's, Spark's otherwise."""

from __future__ import annotations
