"""Structured Streaming: sink and source."""
