"""Plans of writes whose tasks look up the locations of their rows."""
