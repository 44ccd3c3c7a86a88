"""Columnar Avro encoding and decoding.

Converts Arrow columns to binary Avro records and back, whole batches at a time. ``container`` reads and writes the
object container files of the timeline.
"""
