"""Clustering.

Takes a plan strategy and file slices and adds a plan to the timeline; rewrites small or unsorted file groups into
large, sorted ones, and commits the replacement.
"""
