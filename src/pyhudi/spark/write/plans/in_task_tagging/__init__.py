"""Plans of writes whose tasks look up the locations of their rows. Takes the rows of a write job by partition, and
returns a `WritePlan`, if one task for each partition is fast enough."""
