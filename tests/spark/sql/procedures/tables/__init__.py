"""Procedures of whole tables."""
