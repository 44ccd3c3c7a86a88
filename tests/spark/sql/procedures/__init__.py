"""SQL procedures."""
