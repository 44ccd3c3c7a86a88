"""MERGE.

Takes a source, a condition and clauses; joins the source with the table, or writes it as an upsert. Returns the rows of
one commit and their numbers by clause.
"""
