"""Transactions.

Takes a table, an action and the write stats of its tasks, and returns a committed instant or a conflict. Rolls back
failed writes and manages the lock of the table.
"""

from __future__ import annotations
