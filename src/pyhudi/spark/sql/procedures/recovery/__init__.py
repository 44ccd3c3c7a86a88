"""Procedures of recovery. Take the arguments of a call; create savepoints, roll writes back, restore or repair the
table, and return rows about what was done."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.recovery import repair_procedures, rollback_procedures, savepoint_procedures

PROCEDURES: dict[str, Procedure] = {
    **repair_procedures.PROCEDURES,
    **rollback_procedures.PROCEDURES,
    **savepoint_procedures.PROCEDURES,
}
