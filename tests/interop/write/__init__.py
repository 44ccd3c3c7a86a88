"""Writes of one side go on with tables of the other."""
