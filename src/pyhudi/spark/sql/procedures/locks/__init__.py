"""Procedures of the lock. Take the arguments of a call, and return rows about the audit of the storage-based lock."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.locks import lock_audit_procedures

PROCEDURES: dict[str, Procedure] = {
    **lock_audit_procedures.PROCEDURES,
}
