"""Plan of a bulk insert. Takes a write job, and returns a `WritePlan` that creates new file groups only, in one pass
over the rows."""
