"""Structured Streaming. Takes micro-batches and gives a commit for each, once only (``df.writeStream``); takes a
position in the timeline and gives the rows that later commits have written (``spark.readStream``)."""
