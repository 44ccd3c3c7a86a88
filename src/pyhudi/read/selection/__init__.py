"""Selection of file slices by the timeline, as of an instant or for a range of instants.

Takes a table snapshot, a query and the source of file listings, and returns the file slices of the query, with bounds
on the instants of rows, log blocks and schema. Instants that can no longer be read, because they were cleaned, are
refused.
"""
