"""Settings of every Spark that the tests start."""

from __future__ import annotations

SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # no test lives long enough for what the second compiler finds out, and its work would be done on our two cores
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # so many plans are run that what Spark compiles for them does not fit into its cache of 100
    "spark.sql.codegen.cache.maxEntries": "2000",
}
