"""Clustering: rewriting small or unsorted file groups into large, sorted ones."""
