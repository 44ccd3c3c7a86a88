"""Files of the table format as bytes, without any knowledge of tables. Takes Arrow data and gives Avro, Parquet,
ORC, HFile and log files, bloom filters and file names; reads them back as Arrow. The Avro schemas of Apache Hudi are
package data (``avsc``).
"""

from __future__ import annotations
