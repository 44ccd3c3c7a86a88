"""Everything that needs PySpark. Takes DataFrames, options and paths and returns DataFrames and commits, using the
public DataFrame API only. Sessions, activation, settings and errors are here; reads, writes, lookups and indexes have
packages of their own."""

from __future__ import annotations
