"""Structured Streaming, independent of an engine.

Takes the timeline of a table and the checkpoint of a stream, and returns the commits that a micro-batch of a source
reads, or the micro-batches that a sink has committed. Gaps, left by cleaning or archival, are errors.
"""
