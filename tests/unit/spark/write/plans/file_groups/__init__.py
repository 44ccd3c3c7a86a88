"""Plans of writes to existing and new file groups."""
