"""Settings shared by all Spark sessions of the tests."""

from __future__ import annotations

SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # C1 only: the tests are too short for C2 to pay off, and its threads would compete for the two cores. A large young
    # generation suits the garbage of many small plans. Bytecode verification of Spark's own classes is not needed.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewSize=600m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    # retain little information about finished plans and jobs
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.liveUpdate.period": "-1",
    "spark.sql.ui.retainedExecutions": "2",
    "spark.ui.retainedJobs": "2",
    "spark.ui.retainedStages": "2",
    "spark.ui.retainedTasks": "10",
    # the tests run more different plans than Spark's code cache of 100 entries holds
    "spark.sql.codegen.cache.maxEntries": "2000",
}


def remember_java_classes() -> None:
    """Let Py4J look up each Java class name once, not at each call of a function of `pyspark.sql.functions`.

    A look-up searches for the name in every imported package, and for each of these in every jar. It takes about a
    millisecond,
    thousands of times in a suite of small plans.
    """
    from py4j.java_gateway import JavaClass, JVMView

    look_up = JVMView.__getattr__
    known: dict[tuple[int, str], tuple[JVMView, JavaClass]] = {}

    def remembered(view: JVMView, name: str) -> object:
        found = known.get((id(view), name))
        if found is not None:
            return found[1]
        value = look_up(view, name)
        if isinstance(value, JavaClass):
            known[id(view), name] = (view, value)  # keeps a reference to the view, so that its id is not reused
        return value

    JVMView.__getattr__ = remembered
