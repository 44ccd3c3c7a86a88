"""Compaction and log compaction. Takes triggers, a strategy and file slices and gives a plan on the timeline; runs a
pending plan, one task for each file slice, and commits it.
"""
