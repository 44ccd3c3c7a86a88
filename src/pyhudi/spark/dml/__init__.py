"""UPDATE, DELETE and MERGE: what a statement reads, which rows it changes, and how it is tried again."""
