"""Queries of Hudi tables and views."""
