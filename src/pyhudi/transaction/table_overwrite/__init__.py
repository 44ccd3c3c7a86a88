"""A new table in place of an old one. Takes a write with the save mode overwrite that is published, or that has failed,
and gives the folder of the one table that stays: what belongs to the other is deleted."""

from __future__ import annotations
