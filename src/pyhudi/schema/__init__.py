"""Schemas: Arrow, Avro and Spark types of a table, and their evolution.

Takes the schema of an incoming batch and that of the table, and returns the next schema of the table, with values
converted to it.
"""

from __future__ import annotations
