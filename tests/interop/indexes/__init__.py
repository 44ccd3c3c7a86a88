"""Indexes that both sides build, keep up and use."""
