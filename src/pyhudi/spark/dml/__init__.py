"""UPDATE, DELETE and MERGE.

Takes a condition, or a source with clauses, and returns the result of one commit with numbers of rows. Reads the
affected rows, computes new values, and retries on a newer snapshot after a conflict."""
