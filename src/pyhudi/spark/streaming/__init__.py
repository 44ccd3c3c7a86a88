"""Structured Streaming: ``df.writeStream.format("hudi")`` and ``spark.readStream.format("hudi")``."""
