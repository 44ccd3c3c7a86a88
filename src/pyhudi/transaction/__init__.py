"""Transactions: locks, failed writes and their rollback, conflicts, commit. Outcomes are values."""

from __future__ import annotations
