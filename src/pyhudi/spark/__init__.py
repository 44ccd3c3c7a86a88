"""Everything that needs PySpark. Takes DataFrames, options and paths and gives DataFrames and commits, through the
public DataFrame API alone. Session, activation, settings and errors are here; reads, writes, lookups and indexes
have packages of their own.
"""

from __future__ import annotations
