"""Lookup of keys by bloom filters."""
