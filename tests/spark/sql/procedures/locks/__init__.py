"""Procedures of locks."""
