"""Tagging with bloom filters."""
