"""Writes whose tasks look up the locations of their rows."""
