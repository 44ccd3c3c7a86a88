"""Settings of writes."""
