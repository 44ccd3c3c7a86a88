"""Archival. Takes the active timeline and the rules that keep instants active, and gives a plan; moves its instants
into the archived timeline."""
