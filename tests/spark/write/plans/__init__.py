"""Plans of writes."""
