"""SQL statements and procedures."""
