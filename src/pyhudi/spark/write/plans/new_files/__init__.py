"""Plan of a bulk insert, which creates new file groups only."""
