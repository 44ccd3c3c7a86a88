"""Wrappers around methods of PySpark's readers and writers. pyhudi handles calls for the format hudi or a Hudi table,
and passes all others to Spark."""

from __future__ import annotations
