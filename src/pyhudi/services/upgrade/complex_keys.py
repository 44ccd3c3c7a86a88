"""Record keys of one field that the complex key generator of another table version writes in another form.

In version 9 it writes ``id:a``. Apache Hudi 0.15 and 1.0, the releases of earlier versions, write ``a``.
"""

from __future__ import annotations

from pyhudi.config import Options
from pyhudi.errors import UnsupportedTableError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.read.complex_key_encoding import names_parts
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot


def check_complex_keys(client: TableMetaClient, opts: Options, to: int) -> None:
    """Refuse a change of the version after which records would be written again under keys of the other form. Reads a
    record, if the table has the complex key generator.

    Raises:
        UnsupportedTableError: The message has both forms, and the solution.
    """
    config = client.config
    named = to >= 9
    if named == (config.version >= 9) or config.keygen is not KeyGenType.COMPLEX:
        return
    if names_parts(TableSnapshot.load(client), opts, KeySpec.from_config(config, opts)) is (not named):
        (field,) = config.record_keys
        forms = (f"{field}:value", "value")
        stored, written = reversed(forms) if named else forms
        raise UnsupportedTableError(
            f"the record keys of table {config.name!r} have the form {stored!r}, but the complex key generator of "
            f"version {to} writes {written!r}: records would not be found again, and be written twice. Stay at version "
            f"{config.version}, or copy the rows into a new table"
        )
