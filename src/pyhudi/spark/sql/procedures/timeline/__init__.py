"""Procedures of the timeline. Take the arguments of a call, and return rows about commits, their write statistics,
and instants of all actions."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.timeline import (
    archived_commit_procedures,
    commit_procedures,
    instant_export_procedure,
    timeline_procedures,
    write_statistics_procedures,
)

PROCEDURES: dict[str, Procedure] = {
    **archived_commit_procedures.PROCEDURES,
    **commit_procedures.PROCEDURES,
    **instant_export_procedure.PROCEDURES,
    **timeline_procedures.PROCEDURES,
    **write_statistics_procedures.PROCEDURES,
}
