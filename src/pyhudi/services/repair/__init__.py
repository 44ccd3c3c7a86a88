"""Repairs of what a table has lost beside its rows. Takes the table, says what is amiss, and mends it unless it is a
dry run; gives an Arrow table of findings."""
