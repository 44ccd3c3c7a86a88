"""Upgrades and downgrades. Takes a table and the table version that is wanted, and gives a plan: what has to be done
first, and what becomes of properties, timeline, archive and metadata table. Carries it out so that the table changes
its version at one moment."""
