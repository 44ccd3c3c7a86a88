"""Plans of writes to tables with the bucket index: the key of a row determines its file group. Takes a write job and
the timeline, and returns a `WritePlan`."""
