"""Conversion of active and archived timelines between the two layouts, for upgrades and downgrades."""
