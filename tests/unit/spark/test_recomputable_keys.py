"""Tables whose record keys are the texts of their key columns."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T  # noqa: N812

from pyhudi.keygen.key_spec import KeySpec
from pyhudi.spark.keys.key_generator import has_recomputable_keys
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField

SCHEMA = T.StructType().add("id", "long").add("region", "string").add("day", "date").add("fare", "double")


def _spec(keygen: KeyGenType, *fields: str, partition: str = "day", key_class: str | None = None) -> KeySpec:
    return KeySpec(keygen, fields, len(fields) > 1, (PartitionField(partition),), key_class=key_class)


@pytest.mark.parametrize(
    ("spec", "recomputable"),
    [
        (_spec(KeyGenType.SIMPLE, "id"), True),
        (_spec(KeyGenType.SIMPLE, "region"), True),
        (_spec(KeyGenType.COMPLEX, "id", "region"), True),
        (_spec(KeyGenType.CUSTOM, "id"), True),
        # Writers represent days differently: as texts, or as numbers.
        (_spec(KeyGenType.SIMPLE, "day"), False),
        (_spec(KeyGenType.COMPLEX, "id", "fare"), False),
        # Releases differ in such keys, so a table may have both forms.
        (_spec(KeyGenType.COMPLEX, "id"), False),
        # Paths may have other texts than files.
        (_spec(KeyGenType.COMPLEX, "id", "region", partition="region"), False),
        (_spec(KeyGenType.USER_PROVIDED, "id", key_class="com.example.Keys"), False),
        # Generated keys; fields of structs.
        (_spec(KeyGenType.NON_PARTITION), False),
        (_spec(KeyGenType.SIMPLE, "trip.id"), False),
    ],
)
def test_keys_that_are_the_texts_of_their_columns(spec: KeySpec, recomputable: bool) -> None:
    assert has_recomputable_keys(SCHEMA, spec) is recomputable
