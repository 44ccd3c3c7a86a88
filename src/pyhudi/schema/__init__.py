"""Schemas: Arrow, Avro and Spark types of a table, and their evolution.

Takes the schema of an incoming batch and that of the table, and returns the next schema of the table, with values
converted to it. Types, meta columns and the resolution of column names are here; `converters`, `logical_types` and
`evolution` are sub-packages.
"""

from __future__ import annotations
