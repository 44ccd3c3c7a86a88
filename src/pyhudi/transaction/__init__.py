"""Transactions. Takes a table, an action and the write stats of its tasks, and gives a committed instant or a
conflict; rolls back failed writes and holds the table's lock."""

from __future__ import annotations
