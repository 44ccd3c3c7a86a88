"""Structured Streaming. The sink (``df.writeStream``) commits each micro-batch exactly once; the source
(``spark.readStream``) takes a position in the timeline and returns the rows that later commits have written."""
