"""Compaction and log compaction.

Takes triggers, a strategy and file slices and adds a plan to the timeline; executes a pending plan, one task per file
slice, and commits it.
"""
