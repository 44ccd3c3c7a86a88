"""Streams without an engine: offsets of the source in the timeline, and checkpoints of the sink in commits."""
