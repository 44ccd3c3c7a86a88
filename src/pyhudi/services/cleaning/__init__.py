"""Cleaning. Takes the cleaning policy, savepoints and file slices and gives a plan on the timeline; deletes the files
that no query reads any more, and completes the plan with what was deleted."""
