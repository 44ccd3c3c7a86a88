"""Pruning by filters of loaded DataFrames. Takes a condition, as text or as a Column, and plans the read again without
the files in which no row can match it."""
