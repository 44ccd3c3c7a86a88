"""UPDATE, DELETE and MERGE. Takes a condition, or a source with clauses, and gives one commit with the rows counted:
reads the rows concerned, computes new values, and tries again on a newer snapshot after a conflict."""
