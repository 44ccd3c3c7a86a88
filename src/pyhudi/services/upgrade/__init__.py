"""Upgrades and downgrades between table versions: what has to be done first, what becomes of properties, timeline,
archive and metadata table, and one moment at which the table changes its version.
"""
