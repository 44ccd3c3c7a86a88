"""Statements on Hudi tables."""
