"""Wrappers around methods of PySpark's readers and writers. Each call is handled by pyhudi where the format or the
table is Hudi's, and passed to Spark otherwise."""

from __future__ import annotations
