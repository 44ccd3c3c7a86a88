"""Procedure that lists the procedures, or describes one."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.sql.procedure_signatures import signature_of, signatures


def help_(_: SparkSession, arguments: Arguments) -> Rows:
    """List the procedures, or show the parameters and result of one."""
    name = arguments.text("cmd")
    if name is None:
        listed = "".join(f"\t{one}\n" for one in sorted(signatures()))
        return [(f"synopsis\n\tcall [command]([key1]=>[value1],[key2]=>[value2])\ncommands\n{listed}",)]
    signature = signature_of(name)
    parameters = "".join(
        f"\t{p.name:30}{p.kind:30}{p.default or 'null':30}{str(p.required).lower()}\n" for p in signature.parameters
    )
    columns = "".join(f"\t{column:30}{kind}\n" for column, kind in signature.columns)
    heads = f"{'param':30}{'type_name':30}{'default_value':30}required"
    return [(f"parameters:\n\t{heads}\n{parameters}outputType:\n\t{'name':30}type_name\n{columns}",)]


PROCEDURES: dict[str, Procedure] = {"help": help_}
