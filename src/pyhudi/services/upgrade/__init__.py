"""Upgrades and downgrades.

Takes a table and a target version, and creates a plan: preconditions, and changes of properties, timeline, archive and
metadata table. Executes it so that the version of the table changes atomically.
"""
