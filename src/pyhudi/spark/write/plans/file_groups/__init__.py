"""Plans of writes whose rows are tagged with existing file groups, counted, and assigned to these and to new ones.
Takes a write job and the timeline, and returns a `WritePlan`."""
