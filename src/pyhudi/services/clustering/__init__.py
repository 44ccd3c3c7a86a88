"""Clustering. Takes a plan strategy and file slices and gives a plan on the timeline; rewrites small or unsorted file
groups into large, sorted ones, and commits what replaces what."""
