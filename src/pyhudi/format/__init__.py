"""Files of the table format, independent of tables.

Encodes Arrow data as Avro, Parquet, ORC, HFile and log files, bloom filters and file names, and decodes them to Arrow.
The Avro schemas of Apache Hudi are package data (``avsc``).
"""

from __future__ import annotations
