"""Statements that define tables."""
