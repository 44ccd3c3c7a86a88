"""Avro encoding in columns. Takes Arrow columns and gives binary Avro records, or the other way round, for whole
batches at a time. ``container`` reads and writes the object container files of the timeline.
"""
