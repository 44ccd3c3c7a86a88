"""The metadata table, written in turns."""
